//===- ArrayInputs.h - The arrays that a model reads ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_INPUTS_ARRAYINPUTS_H
#define ACCEL_TOOLS_DRIVER_INPUTS_ARRAYINPUTS_H

#include "tools/driver/Inputs/PlanInputs.h"

namespace accel {

/// The arrays of a job are what its model reads, no more and no less. Reports
/// what differs, and notes the bounds of inputs in `inputs.training`.
void checkArrays(PlanInputs &inputs, const PlanOptions &options,
                 DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_INPUTS_ARRAYINPUTS_H
