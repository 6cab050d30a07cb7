//===- LigerInputs.h - Models that Liger Kernel knows -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_INPUTS_LIGERINPUTS_H
#define ACCEL_TOOLS_DRIVER_INPUTS_LIGERINPUTS_H

#include "tools/driver/Inputs/PlanInputs.h"

namespace accel {

/// Whether use_liger_kernel changes such a model. A .pt2 may be of any.
bool hasLigerKernels(const PlanInputs &inputs);

/// Of a model that Liger Kernel has no kernels for nothing changes: warns, and
/// plans it as it is.
void checkLiger(PlanInputs &inputs, DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_INPUTS_LIGERINPUTS_H
