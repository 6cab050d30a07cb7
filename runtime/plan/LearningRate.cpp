//===- LearningRate.cpp - The schedule of the learning rate ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/LearningRate.h"

#include <algorithm>
#include <cmath>

namespace accel::plan {

namespace {

/// How much of what a decay takes away is left at `progress` (0 to 1) of a
/// decay.
double left(const std::string &shape, double progress) {
  if (shape == "linear")
    return 1.0 - progress;
  if (shape == "1-sqrt")
    return 1.0 - std::sqrt(progress);
  return 0.5 * (1.0 + std::cos(M_PI * progress)); // cosine
}

double part(int64_t done, int64_t all) {
  return std::min(1.0, static_cast<double>(done) / static_cast<double>(all));
}

/// The rate where it does not depend on the number of steps: one over the root
/// of the steps done, and 1 at the end of the warmup.
double inverseRoot(const LrSchedule &schedule, int64_t step) {
  const int64_t scale = schedule.timescale     ? schedule.timescale
                        : schedule.warmupSteps ? schedule.warmupSteps
                                               : 10'000;
  return 1.0 /
         std::sqrt(static_cast<double>(step + scale - schedule.warmupSteps) /
                   static_cast<double>(scale));
}

} // namespace

double lrFactor(const LrSchedule &schedule, double base, int64_t step) {
  if (step < schedule.warmupSteps)
    return static_cast<double>(step + 1) /
           static_cast<double>(schedule.warmupSteps);
  const std::string &decay = schedule.decay;
  if (decay == "inverse_sqrt")
    return inverseRoot(schedule, step);
  if (decay == "constant" || schedule.steps <= schedule.warmupSteps)
    return 1;
  const double progress =
      part(step - schedule.warmupSteps, schedule.steps - schedule.warmupSteps);
  double remains = 0;
  if (decay == "cosine_with_restarts") {
    const double cycle = static_cast<double>(schedule.cycles) * progress;
    remains = progress < 1 ? left("cosine", std::fmod(cycle, 1.0)) : 0;
  } else if (decay == "polynomial") {
    remains = std::pow(1.0 - progress, schedule.power);
  } else if (decay == "warmup_stable_decay") {
    const int64_t begin = schedule.steps - schedule.decaySteps;
    remains = step < begin ? 1.0
                           : left(schedule.decayShape,
                                  part(step - begin, schedule.decaySteps));
  } else {
    remains = left(decay, progress);
  }
  const double end = base > 0 ? schedule.minLr / base : 0;
  return end + (1 - end) * remains;
}

std::vector<double> learningRates(const Job &job, int64_t step) {
  std::vector<double> rates;
  for (const OptimizerGroup &group : job.optimizer.groups)
    rates.push_back(group.lr * lrFactor(job.schedule,
                                        job.optimizer.groups.front().lr, step));
  return rates;
}

} // namespace accel::plan
