//===- PlannedSteps.h - Steps predicted as plan predicts them ---*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FRAMEWORKSTEPS_PLANNEDSTEPS_H
#define ACCEL_PASSES_FRAMEWORKSTEPS_PLANNEDSTEPS_H

#include "passes/FrameworkSteps/StepEvaluator.h"

#include <vector>

namespace accel {

/// A step and the allocator that holds its tensors.
struct PlannedStep {
  std::shared_ptr<const StepModel> model;
  Candidate candidate; // passes verifyCandidate
  replay::AllocatorRules allocator;
  bool onDevice = false; // replayInto
};

/// What a rank has beside its tensors, and what it may use in all.
struct DeviceRoom {
  const Target &target;
  int64_t contextBytes = 0;
  int64_t budgetBytes = 0; // 0: no end
  /// False: the device is a stand-in, and no allocator is replayed.
  bool replays = true;
};

/// Evaluates and replays each step (StepEvaluator::evaluate with its lists,
/// replayInto), in as many threads as there are cores. The predictions are in
/// the order of `steps` and do not depend on the number of threads: each step
/// is predicted by itself.
std::vector<StepPrediction> predictSteps(const std::vector<PlannedStep> &steps,
                                         const DeviceRoom &room);

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKSTEPS_PLANNEDSTEPS_H
