//===- CheckInputs.h - What cannot be planned, by name ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_INPUTS_CHECKINPUTS_H
#define ACCEL_TOOLS_DRIVER_INPUTS_CHECKINPUTS_H

#include "tools/driver/Inputs/PlanInputs.h"

namespace accel {

/// Reports what the executor or the releases at hand do in a step that is not
/// modelled, and where they stop.
void checkInputs(const PlanInputs &inputs, const PlanOptions &options,
                 DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_INPUTS_CHECKINPUTS_H
