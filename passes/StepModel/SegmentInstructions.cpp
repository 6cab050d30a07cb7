//===- SegmentInstructions.cpp - Instructions put in and taken out --------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/StepModel/SegmentGraph.h"

namespace accel {

void SegmentGraph::insert(size_t at, const plan::Instruction &instruction,
                          bool isForward, bool isView) {
  const auto position = static_cast<std::ptrdiff_t>(at);
  const int ofNode = node[at], ofChild = child.empty() ? -1 : child[at];
  function.instructions.insert(function.instructions.begin() + position,
                               instruction);
  forward.insert(forward.begin() + position, isForward);
  view.insert(view.begin() + position, isView);
  node.insert(node.begin() + position, ofNode);
  pointwiseKeeps.insert(pointwiseKeeps.begin() + position, false);
  if (!child.empty())
    child.insert(child.begin() + position, ofChild);
  for (auto *seconds : {&waits, &repeatWaits})
    if (!seconds->empty())
      seconds->insert(seconds->begin() + position, -1);
  if (!host.empty())
    host.insert(host.begin() + position, HostWork());
}

SegmentGraph SegmentGraph::takeInstructions() {
  std::vector<plan::Instruction> list = std::move(function.instructions);
  function.instructions.clear();
  SegmentGraph old = *this;
  old.function.instructions = std::move(list);
  forward.clear();
  view.clear();
  node.clear();
  child.clear();
  pointwiseKeeps.clear();
  waits.clear();
  repeatWaits.clear();
  host.clear();
  return old;
}

} // namespace accel
