//===- Fp8Inputs.h - Jobs whose linear layers compute in fp8 ----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_INPUTS_FP8INPUTS_H
#define ACCEL_TOOLS_DRIVER_INPUTS_FP8INPUTS_H

#include "passes/Targets/Target.h"
#include "tools/driver/Inputs/PlanInputs.h"

namespace accel {

/// What --fp8 asks for, else mixed_precision fp8 with its fp8_config; nothing
/// where neither is there.
std::optional<Setting<Fp8Training>> fp8Training(const PlanInputs &inputs);

/// Refuses what stops at run time, and what is not counted.
void checkFp8(const PlanInputs &inputs, DiagnosticEngine &engine);

/// The device computes in fp8; else false, and reported.
bool checkFp8Target(const PlanInputs &inputs, const Target &target,
                    DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_INPUTS_FP8INPUTS_H
