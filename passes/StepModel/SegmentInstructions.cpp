//===- SegmentInstructions.cpp - Instructions put in and taken out --------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/StepModel/SegmentGraph.h"

#include "passes/Cost/OpCost.h"
#include "passes/StepModel/SegmentOrder.h"

#include <algorithm>

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

std::vector<bool> SegmentGraph::overLogits() const {
  std::vector<bool> result(function.instructions.size(), false);
  auto elements = [&](int slot) {
    int64_t product = slot < 0 ? 0 : 1;
    if (slot >= 0)
      for (int64_t size : function.slots[slot].shape)
        product *= size;
    return product;
  };
  const auto first =
      std::find_if(function.instructions.begin(), function.instructions.end(),
                   [](const plan::Instruction &instruction) {
                     return opKind(instruction) == OpKind::Matmul;
                   });
  if (!loss || first == function.instructions.end())
    return result;
  const int64_t logits = elements(first->results.front());
  for (size_t i = 0; i < result.size(); ++i) {
    auto check = [&](int slot) {
      const int64_t size = elements(slot);
      if (size <= logits && size > logits - logits / 16)
        result[i] = true;
    };
    forEachSlot(function.instructions[i], check);
    for (int slot : function.instructions[i].results)
      check(slot);
  }
  return result;
}

void measureLogits(const SegmentGraph &graph, const Target &target,
                   SegmentKind &kind) {
  const std::vector<bool> chosen = graph.overLogits();
  for (size_t i = 0; i < chosen.size(); ++i)
    if (chosen[i])
      (graph.forward[i] ? kind.forwardLogitsSeconds
                        : kind.backwardLogitsSeconds) +=
          opSeconds(graph.function, graph.function.instructions[i], target);
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
