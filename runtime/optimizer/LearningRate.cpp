//===- LearningRate.cpp - The schedule of the learning rate ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/optimizer/LearningRate.h"

#include <algorithm>
#include <cmath>

namespace accel::run {

double learningRate(const plan::LrSchedule &schedule, double base,
                    int64_t step) {
  if (step < schedule.warmupSteps)
    return base * static_cast<double>(step + 1) /
           static_cast<double>(schedule.warmupSteps);
  if (schedule.decay == "constant" || schedule.steps <= schedule.warmupSteps)
    return base;
  const double progress = std::min(
      1.0, static_cast<double>(step - schedule.warmupSteps) /
               static_cast<double>(schedule.steps - schedule.warmupSteps));
  const double left = schedule.decay == "cosine"
                          ? 0.5 * (1.0 + std::cos(M_PI * progress))
                          : 1.0 - progress;
  return schedule.minLr + (base - schedule.minLr) * left;
}

} // namespace accel::run
