//===- PrecisionInputs.h - The file with other precisions -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_INPUTS_PRECISIONINPUTS_H
#define ACCEL_TOOLS_DRIVER_INPUTS_PRECISIONINPUTS_H

#include "tools/driver/Inputs/PlanInputs.h"

namespace accel {

/// The accelerate file read again with each other mixed_precision, for a search
/// over them (PlanInputs::precisions); a note where it cannot be.
void readPrecisions(PlanInputs &inputs, const PlanOptions &options,
                    DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_INPUTS_PRECISIONINPUTS_H
