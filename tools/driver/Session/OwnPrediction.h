//===- OwnPrediction.h - Figures of accel-run's own program -----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_SESSION_OWNPREDICTION_H
#define ACCEL_TOOLS_DRIVER_SESSION_OWNPREDICTION_H

#include "passes/Executors/Executor.h"

namespace accel {

/// `plan.predicted` as a StepPrediction; with a target, what is waited for by
/// cause. The seconds of recomputation are not told apart.
StepPrediction ownPrediction(const plan::Plan &plan, const Target *target,
                             int64_t ranksPerNode);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_SESSION_OWNPREDICTION_H
