//===- FusedSeconds.cpp - Seconds of a segment, fused or not --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/StepModel/FusedSeconds.h"

#include "passes/Cost/ExchangeCost.h"
#include "passes/Cost/OpCost.h"

namespace accel {

double waitSeconds(const SegmentGraph &graph, EagerMode mode, int i, bool again,
                   const Target &target) {
  const auto at = static_cast<size_t>(i);
  if (again && mode == EagerMode::Pointwise && !graph.repeatWaits.empty() &&
      graph.repeatWaits[at] >= 0)
    return graph.repeatWaits[at];
  if (!graph.waits.empty() && graph.waits[at] >= 0)
    return graph.waits[at];
  return exchangeSeconds(graph.function, graph.function.instructions[at],
                         graph.mesh, graph.ranksPerNode, target);
}

double eagerSeconds(const SegmentGraph &graph, EagerMode mode, int i,
                    bool again, const Target &target, double &exchanged) {
  const double waits = waitSeconds(graph, mode, i, again, target);
  exchanged += waits;
  return opSeconds(graph.function, graph.function.instructions[i], target) +
         waits;
}

void addFusedSeconds(const SegmentGraph &graph, EagerMode mode,
                     const std::vector<bool> &kept, int last,
                     const Target &target, SegmentVariant &variant) {
  plan::Function forward = graph.function, backward = graph.function;
  forward.instructions.clear();
  backward.instructions.clear();
  for (size_t i = 0; i < graph.function.instructions.size(); ++i) {
    const auto at = static_cast<int>(i);
    const plan::Instruction &instruction = graph.function.instructions[i];
    const bool twice =
        mode != EagerMode::None && graph.forward[i] && !kept[i] && at <= last;
    if (graph.forward[i]) {
      forward.instructions.push_back(instruction);
      variant.compiledForwardSeconds +=
          waitSeconds(graph, mode, at, false, target);
    }
    if (!graph.forward[i] || twice) {
      backward.instructions.push_back(instruction);
      variant.compiledBackwardSeconds +=
          waitSeconds(graph, mode, at, twice, target);
    }
  }
  variant.compiledForwardSeconds += fusedCost(forward, target).seconds;
  variant.compiledBackwardSeconds += fusedCost(backward, target).seconds;
}

} // namespace accel
