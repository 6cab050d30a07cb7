//===- DeviceInputs.h - The device that accelerate launch takes -*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_INPUTS_DEVICEINPUTS_H
#define ACCEL_TOOLS_DRIVER_INPUTS_DEVICEINPUTS_H

#include "passes/Targets/Target.h"
#include "tools/driver/Inputs/PlanInputs.h"

namespace accel {

/// Warns where Accelerate would start another job on the target's kind of
/// device than the one that is planned.
void warnOfDevice(const PlanInputs &inputs, const PlanOptions &options,
                  const Target &target, DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_INPUTS_DEVICEINPUTS_H
