//===- DdpInputs.h - What a script passes to DDP ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_INPUTS_DDPINPUTS_H
#define ACCEL_TOOLS_DRIVER_INPUTS_DDPINPUTS_H

#include "tools/driver/Inputs/PlanInputs.h"

namespace accel {

/// Reports keys of `ddp` in a job file, or of --ddp-kwargs, that its executor
/// has no meaning for.
void checkDdp(const PlanInputs &inputs, const PlanOptions &options,
              DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_INPUTS_DDPINPUTS_H
