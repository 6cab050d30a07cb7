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

/// DistributedDataParallel looks in every step for parameters that the forward
/// did not use: as its arguments say, or as Trainer chooses by the model
/// (Trainer._build_accelerator_args of transformers 5.23).
bool findsUnusedParameters(const PlanInputs &inputs,
                           const PlanOptions &options);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_INPUTS_DDPINPUTS_H
