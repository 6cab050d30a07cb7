//===- SegmentOrder.cpp - The backward as autograd runs it ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/StepModel/SegmentOrder.h"

#include <algorithm>

namespace accel {

using plan::Arg;
using plan::Instruction;

std::vector<bool> gradientSlots(const SegmentGraph &graph) {
  const plan::Function &function = graph.function;
  std::vector<bool> gradients(function.slots.size(), false);
  for (size_t i = static_cast<size_t>(graph.inputs); i < function.inputs.size();
       ++i)
    gradients[function.slots[function.inputs[i]].base] = true;
  for (size_t i = 0; i < function.instructions.size(); ++i)
    if (!graph.forward[i] && !graph.view[i])
      for (int slot : function.instructions[i].results)
        if (slot >= 0)
          gradients[slot] = true;
  return gradients;
}

bool isGradientSum(const SegmentGraph &graph,
                   const std::vector<bool> &gradients, int i) {
  const Instruction &instr = graph.function.instructions[i];
  if (instr.op != "aten::add.Tensor" || instr.results.size() != 1 ||
      instr.results[0] < 0 || instr.args.size() < 2 ||
      instr.args[0].kind != Arg::Kind::Tensor ||
      instr.args[1].kind != Arg::Kind::Tensor)
    return false;
  for (int k : {0, 1})
    if (!gradients[graph.function.slots[instr.args[k].slot].base])
      return false;
  return true;
}

std::vector<int> backwardOrder(const SegmentGraph &graph,
                               const std::vector<bool> &gradients) {
  const plan::Function &function = graph.function;
  std::vector<int> made(function.slots.size(), -1); // slot: instruction
  std::vector<int> plain;
  std::vector<std::pair<int, int>> sums; // after which, the sum
  std::vector<int> arrives(function.instructions.size(), -1);
  const int count = static_cast<int>(function.instructions.size());
  for (int i = 0; i < count; ++i) {
    if (graph.forward[i])
      continue;
    const Instruction &instr = function.instructions[i];
    int latest = -1;
    forEachSlot(instr, [&](int slot) {
      const int from = made[slot];
      if (from >= 0)
        latest = std::max(latest, arrives[from] >= 0 ? arrives[from] : from);
    });
    for (int slot : instr.results)
      if (slot >= 0)
        made[slot] = i;
    if (isGradientSum(graph, gradients, i) && latest >= 0) {
      arrives[i] = latest;
      sums.emplace_back(latest, i);
    } else {
      plain.push_back(i);
    }
  }
  std::stable_sort(sums.begin(), sums.end(), [](const auto &a, const auto &b) {
    return a.first < b.first;
  });
  std::vector<int> order;
  size_t next = 0;
  for (size_t k = 0; k < plain.size(); ++k) {
    order.push_back(plain[k]);
    if (k + 1 < plain.size() &&
        graph.node[plain[k + 1]] == graph.node[plain[k]])
      continue;
    for (; next < sums.size() && sums[next].first <= plain[k]; ++next)
      order.push_back(sums[next].second);
  }
  for (; next < sums.size(); ++next)
    order.push_back(sums[next].second);
  return order;
}

} // namespace accel
