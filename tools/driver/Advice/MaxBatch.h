//===- MaxBatch.h - The largest micro-batch that fits -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_ADVICE_MAXBATCH_H
#define ACCEL_TOOLS_DRIVER_ADVICE_MAXBATCH_H

#include "tools/driver/Advice/Advice.h"

#include <functional>

namespace accel {

/// Doubles the micro-batch until it does not fit, then bisects. `at` predicts a
/// micro-batch; nothing where it has no model, which was reported, and nothing
/// is returned then.
std::optional<MaxBatch>
findMaxBatch(const std::function<std::optional<StepPrediction>(int64_t)> &at,
             const std::function<bool(const StepPrediction &)> &fits);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_ADVICE_MAXBATCH_H
