//===- Segments.cpp - What the allocator holds for a plan -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Segments/Segments.h"

#include <algorithm>

namespace accel {

replay::AllocatorRules accelRunAllocator() {
  replay::AllocatorRules rules;
  rules.expandableSegments = true;
  return rules;
}

int64_t keptWorkspaceBytes(const plan::Plan &plan, const Target &target,
                           const RankAllocator &allocator) {
  int64_t most = 0;
  for (int stage = 0; allocator.keepsWorkspaces && stage < plan.numStages();
       ++stage) {
    PlanTensors tensors(plan, stage,
                        {target.capability, target.multiprocessors},
                        /*keepsWorkspaces=*/true);
    tensors.step();
    most = std::max(most, tensors.keptBytes());
  }
  return most;
}

SegmentBytes replaySegments(const plan::Plan &plan, const Target &target,
                            const RankAllocator &allocator) {
  constexpr int mostSteps = 6;
  SegmentBytes most;
  for (int stage = 0; stage < plan.numStages(); ++stage) {
    PlanTensors tensors(plan, stage,
                        {target.capability, target.multiprocessors},
                        allocator.keepsWorkspaces);
    replay::Replay replay(allocator.rules);
    for (int step = 0; step < mostSteps && !replay.settled(); ++step) {
      tensors.step();
      replay.play(tensors.problem());
    }
    if (plan.evalOf(stage) >= 0) {
      tensors.evaluate();
      tensors.step();
      replay.play(tensors.problem());
    }
    const replay::AllocatorStatistics at = replay.result().statistics;
    most.reserved = std::max(most.reserved, at.reservedPeak);
    most.allocated = std::max(most.allocated, at.allocatedPeak);
  }
  return most;
}

} // namespace accel
