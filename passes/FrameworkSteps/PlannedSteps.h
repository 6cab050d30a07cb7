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

/// Steps that are predicted in threads from the moment they are started
/// (StepEvaluator::evaluate with its lists, replayInto), while the caller goes
/// on to decide others. A prediction does not depend on the number of threads:
/// each step is predicted by itself.
class StepPredictions {
public:
  /// `room.target` must outlive it.
  explicit StepPredictions(const DeviceRoom &room);
  /// Waits for what was begun; steps that no thread has taken are left out.
  ~StepPredictions();
  StepPredictions(StepPredictions &&) noexcept;

  void start(PlannedStep step);
  /// Of each step, in the order in which they were started. The caller's thread
  /// predicts too.
  std::vector<StepPrediction> take();

private:
  class Queue;
  std::unique_ptr<Queue> queue;
};

/// The predictions of `steps`, in their order.
std::vector<StepPrediction> predictSteps(const std::vector<PlannedStep> &steps,
                                         const DeviceRoom &room);

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKSTEPS_PLANNEDSTEPS_H
