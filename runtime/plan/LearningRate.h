//===- LearningRate.h - The schedule of the learning rate -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_LEARNINGRATE_H
#define ACCEL_RUNTIME_PLAN_LEARNINGRATE_H

#include "runtime/plan/Plan.h"

#include <vector>

namespace accel::plan {

/// What every group's rate is multiplied by at optimizer step `step` (from 0):
/// (step + 1) / warmupSteps while step < warmupSteps, then the decay from 1 to
/// minLr / base over the steps that are left. The last step, `steps` - 1, still
/// is above the end; from `steps` on it is there. A constant schedule, or one
/// without a length, stays at 1.
///
/// Decays are those of transformers.get_scheduler, with minLr as its lr_end of
/// polynomial and as its min_lr_ratio of warmup_stable_decay. Its warmup is a
/// step behind: there the first step has a rate of 0.
///
/// `base` is the optimizer's rate, which minLr is of: one factor for all groups
/// keeps their ratios, as in transformers.
double lrFactor(const LrSchedule &schedule, double base, int64_t step);

/// The groups' rates at optimizer step `step`. The first group has the
/// optimizer's rate.
std::vector<double> learningRates(const Job &job, int64_t step);

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_LEARNINGRATE_H
