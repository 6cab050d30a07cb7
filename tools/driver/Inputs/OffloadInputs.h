//===- OffloadInputs.h - What waits in host memory -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_INPUTS_OFFLOADINPUTS_H
#define ACCEL_TOOLS_DRIVER_INPUTS_OFFLOADINPUTS_H

#include "passes/Targets/Target.h"
#include "runtime/plan/Plan.h"
#include "tools/driver/Inputs/PlanInputs.h"

namespace accel {

/// Why nothing can be planned to leave this machine's devices, or no optimizer
/// with its `updates`, as a clause; empty: it can.
std::string whyNotOffloaded(const Target &machine, bool updates);

/// False, with an error at the key that asks for it, where `executor` cannot
/// leave in host memory what the job wants there, or nothing bounds how long
/// that takes.
bool checkOffload(const PlanInputs &inputs, FrameworkKind executor,
                  const Target &machine, DiagnosticEngine &engine);

/// False, with an error, where the job's drive (JobConfig::disk) cannot do what
/// is asked, or nothing is known of how fast it is.
bool checkDrive(const PlanInputs &inputs, const Target &target,
                DiagnosticEngine &engine);

/// Warns where the plan leaves no activation on the host, and the job asks for
/// it.
void warnIdleOffload(const PlanInputs &inputs, const plan::Plan &plan,
                     DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_INPUTS_OFFLOADINPUTS_H
