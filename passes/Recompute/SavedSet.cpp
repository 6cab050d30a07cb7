//===- SavedSet.cpp - Which forward values to keep ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Recompute/SavedSet.h"

#include "passes/Recompute/JointOrder.h"

#include <algorithm>
#include <cmath>

namespace accel {

SavedSetSolution measureSavedSet(const SavedSetProblem &problem,
                                 const SavedSet &saved) {
  SavedSetSolution solution;
  solution.saved = saved;
  JointSplit split = splitGraph(problem.graph, saved);
  solution.bytes = measureSplit(problem.graph, split);
  for (int op : split.backward)
    if (problem.graph.marks[op].forward)
      solution.recomputeSeconds += problem.seconds[op];
  solution.feasible =
      solution.bytes.saved <= problem.capBytes &&
      (!problem.capBackwardPeak ||
       solution.bytes.backwardHeldPeak <= *problem.capBackwardPeak);
  return solution;
}

std::string verifySavedSet(const SavedSetProblem &problem,
                           const SavedSetSolution &solution) {
  const JointGraph &graph = problem.graph;
  if (!solution.feasible)
    return "no saved set was found";
  if (solution.saved.size() != graph.marks.size())
    return "the saved set is of another graph";
  for (int op : splitGraph(graph, solution.saved).backward)
    if (graph.marks[op].forward && !graph.marks[op].mayRecompute)
      return graph.function.instructions[op].op +
             " is computed twice, but may not be";
  const SavedSetSolution own = measureSavedSet(problem, solution.saved);
  if (own.bytes.saved > problem.capBytes)
    return std::to_string(own.bytes.saved) + " bytes are saved, but " +
           std::to_string(problem.capBytes) + " are allowed";
  if (problem.capBackwardPeak &&
      own.bytes.backwardHeldPeak > *problem.capBackwardPeak)
    return "the backward's peak is " +
           std::to_string(own.bytes.backwardHeldPeak) + " bytes, but " +
           std::to_string(*problem.capBackwardPeak) + " are allowed";
  if (own.bytes.saved != solution.bytes.saved ||
      own.bytes.backwardHeldPeak != solution.bytes.backwardHeldPeak)
    return "the bytes are not those of the split";
  const double slack = 1e-9 * std::max(own.recomputeSeconds, 1e-12);
  if (std::abs(own.recomputeSeconds - solution.recomputeSeconds) > slack)
    return "the recomputation is not that of the split";
  if (solution.boundSeconds > own.recomputeSeconds + slack)
    return "the bound is above the answer";
  return "";
}

RecomputeModel::RecomputeModel(const SavedSetProblem &problem) {
  const JointGraph &graph = problem.graph;
  const plan::Function &function = graph.function;
  const std::vector<int> maker = makers(graph);
  std::vector<int> nodeOf(graph.marks.size(), -1);
  std::vector<int> storageOf(function.slots.size(), -1);
  std::vector<bool> reached(graph.marks.size());
  std::vector<int> worklist;

  // The forward operation behind a slot, if it is no argument.
  auto forwardBase = [&](int slot) {
    int base = function.slots[slot].base;
    int op = maker[base];
    return op >= 0 && graph.marks[op].forward ? base : -1;
  };
  auto reach = [&](int slot) {
    int base = forwardBase(slot);
    if (base >= 0 && !reached[maker[base]]) {
      reached[maker[base]] = true;
      worklist.push_back(maker[base]);
    }
    return base;
  };
  // What the backward itself reads: that of a split that keeps all.
  std::vector<bool> needed(function.slots.size());
  JointSplit all = splitGraph(graph, savedByMode(graph, "none"), false);
  for (int slot : all.crossing)
    needed[reach(slot)] = true;
  while (!worklist.empty()) {
    int op = worklist.back();
    worklist.pop_back();
    for (const plan::Arg &arg : function.instructions[op].args)
      reach(arg.slot);
  }
  for (size_t op = 0; op < reached.size(); ++op) {
    if (!reached[op])
      continue;
    nodeOf[op] = static_cast<int>(nodes.size());
    Node &node = nodes.emplace_back();
    node.instruction = static_cast<int>(op);
    node.seconds = problem.seconds[op];
    node.mayRecompute = graph.marks[op].mayRecompute;
    for (const plan::Arg &arg : function.instructions[op].args) {
      int base = forwardBase(arg.slot);
      if (base < 0)
        continue;
      int storage = storageOf[base];
      if (std::find(node.reads.begin(), node.reads.end(), storage) ==
          node.reads.end()) {
        node.reads.push_back(storage);
        storages[storage].readers.push_back(nodeOf[op]);
      }
    }
    for (int slot : function.instructions[op].results) {
      storageOf[slot] = static_cast<int>(storages.size());
      node.makes.push_back(storageOf[slot]);
      Storage &storage = storages.emplace_back();
      storage.slot = slot;
      storage.node = nodeOf[op];
      storage.bytes = function.slotBytes(slot);
      storage.needed = needed[slot];
    }
  }
}

std::vector<bool> RecomputeModel::closure(const std::vector<bool> &kept) const {
  std::vector<bool> repeated(nodes.size());
  for (size_t s = 0; s < storages.size(); ++s)
    if (storages[s].needed && !kept[s])
      repeated[storages[s].node] = true;
  for (size_t n = nodes.size(); n-- > 0;)
    if (repeated[n])
      for (int s : nodes[n].reads)
        if (!kept[s])
          repeated[storages[s].node] = true;
  return repeated;
}

SavedSet RecomputeModel::savedSet(const std::vector<bool> &kept,
                                  size_t numOps) const {
  SavedSet saved(numOps);
  const std::vector<bool> repeated = closure(kept);
  for (size_t s = 0; s < storages.size(); ++s)
    if (kept[s] && !repeated[storages[s].node])
      saved[nodes[storages[s].node].instruction] = true;
  return saved;
}

std::vector<bool> RecomputeModel::kept(const SavedSet &saved) const {
  std::vector<bool> result(storages.size());
  for (size_t s = 0; s < storages.size(); ++s)
    result[s] = saved[nodes[storages[s].node].instruction];
  return result;
}

int64_t RecomputeModel::savedBytes(const std::vector<bool> &kept) const {
  const std::vector<bool> repeated = closure(kept);
  int64_t total = 0;
  for (size_t s = 0; s < storages.size(); ++s) {
    const Storage &storage = storages[s];
    if (!kept[s] || repeated[storage.node])
      continue;
    bool read = storage.needed;
    for (int reader : storage.readers)
      read |= repeated[reader];
    total += read ? storage.bytes : 0;
  }
  return total;
}

double RecomputeModel::seconds(const std::vector<bool> &repeated) const {
  double total = 0;
  for (size_t n = 0; n < nodes.size(); ++n)
    total += repeated[n] ? nodes[n].seconds : 0;
  return total;
}

} // namespace accel
