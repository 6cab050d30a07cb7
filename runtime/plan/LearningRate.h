//===- LearningRate.h - The schedule of the learning rate -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_LEARNINGRATE_H
#define ACCEL_RUNTIME_PLAN_LEARNINGRATE_H

#include "runtime/plan/Plan.h"

namespace accel::plan {

/// The rate at optimizer step `step` (from 0) for a group whose base rate is
/// `base`: base * (step + 1) / warmupSteps while step < warmupSteps, then the
/// decay from `base` to `minLr` over the steps that are left. The last step,
/// `steps` - 1, still is above minLr; from `steps` on it is minLr. A constant
/// schedule, or one without a length, stays at `base`.
///
/// Decays are those of transformers.get_scheduler, with minLr as its lr_end of
/// polynomial and as its min_lr_ratio of warmup_stable_decay. Its warmup is a
/// step behind: there the first step has a rate of 0.
double learningRate(const LrSchedule &schedule, double base, int64_t step);

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_LEARNINGRATE_H
