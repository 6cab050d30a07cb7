//===- PlannedSteps.cpp - Steps predicted as plan predicts them -----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/PlannedSteps.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>

namespace accel {

std::vector<StepPrediction> predictSteps(const std::vector<PlannedStep> &steps,
                                         const DeviceRoom &room) {
  std::vector<StepPrediction> results(steps.size());
  std::atomic<size_t> next = 0;
  auto work = [&] {
    // An evaluator is for one thread.
    std::map<const StepModel *, std::unique_ptr<StepEvaluator>> evaluators;
    for (size_t i = next++; i < steps.size(); i = next++) {
      const PlannedStep &step = steps[i];
      std::unique_ptr<StepEvaluator> &evaluator = evaluators[step.model.get()];
      if (!evaluator)
        evaluator = std::make_unique<StepEvaluator>(*step.model, room.target);
      results[i] = evaluator->evaluate(step.candidate, /*detail=*/true);
      if (room.replays)
        replayInto(results[i], *evaluator, step.candidate, step.allocator,
                   room.contextBytes, room.budgetBytes, step.onDevice);
    }
  };
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> others;
  for (size_t t = 1; t < std::min(cores, steps.size()); ++t)
    others.emplace_back(work);
  work();
  for (std::thread &other : others)
    other.join();
  return results;
}

} // namespace accel
