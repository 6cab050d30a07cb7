//===- PeakMoments.cpp - What a backward holds in its order ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Checkpoint/PeakMoments.h"

#include "passes/Checkpoint/JointOrder.h"

#include <algorithm>

namespace accel {

PeakMoments::PeakMoments(const JointGraph &graph, const RecomputeModel &model)
    : graph(graph), model(model), maker(makers(graph)),
      storageOf(graph.function.slots.size(), -1),
      first(graph.function.slots.size(), -1),
      last(graph.function.slots.size(), -1) {
  for (size_t s = 0; s < model.storages.size(); ++s)
    storageOf[model.storages[s].slot] = static_cast<int>(s);
  const SavedSet all(graph.marks.size(), true);
  for (int op : splitGraph(graph, all, false).backward)
    if (!graph.marks[op].forward)
      ops.push_back(op);
  for (size_t i = 0; i < ops.size(); ++i) {
    std::vector<int> &list = reads.emplace_back();
    for (const plan::Arg &arg : graph.function.instructions[ops[i]].args) {
      int base = graph.function.slots[arg.slot].base;
      list.push_back(base);
      if (first[base] < 0)
        first[base] = static_cast<int>(i);
      last[base] = static_cast<int>(i);
    }
  }
}

PeakMoment PeakMoments::at(int i) const {
  const plan::Function &function = graph.function;
  const int numSlots = static_cast<int>(function.slots.size());
  std::vector<bool> returned(function.slots.size()),
      ofParameter(function.slots.size()), given(function.slots.size());
  for (const JointGradient &gradient : graph.gradients)
    (gradient.ofParameter ? ofParameter
                          : returned)[function.slots[gradient.slot].base] =
        true;
  for (int slot : graph.tangents)
    given[slot] = true;
  std::vector<int> madeAt(graph.marks.size(), -1);
  for (size_t j = 0; j < ops.size(); ++j)
    madeAt[ops[j]] = static_cast<int>(j);
  PeakMoment moment;
  moment.readByNow.resize(model.storages.size());
  for (int slot = 0; slot < numSlots; ++slot) {
    if (function.slots[slot].base != slot)
      continue;
    const int64_t bytes = function.slotBytes(slot);
    const int op = maker[slot];
    if (op < 0) {
      moment.constant += given[slot] && last[slot] >= i ? bytes : 0;
    } else if (graph.marks[op].forward) {
      const int storage = storageOf[slot];
      if (storage < 0)
        continue;
      const bool byNow = first[slot] >= 0 && first[slot] <= i;
      moment.readByNow[storage] = byNow;
      if (byNow && last[slot] >= i)
        moment.constant += bytes; // kept or repeated, it is there
      else if (last[slot] > i)
        moment.later.push_back(storage);
      else
        moment.maybe.push_back(storage);
    } else if (int made = madeAt[op]; made >= 0 && made <= i) {
      const bool isRead = last[slot] >= 0;
      const bool now =
          made == i && (isRead || returned[slot] ||
                        (ofParameter[slot] && !graph.marks[op].intoPlace));
      const bool on = made < i && (last[slot] >= i ||
                                   (returned[slot] && !ofParameter[slot]));
      moment.constant += now || on ? bytes : 0;
    }
  }
  return moment;
}

int PeakMoments::fullest(const SavedSet &saved, int64_t cap) const {
  const JointSplit split = splitGraph(graph, saved, false);
  OrderCost cost(graph, split.backward, inputGradients(graph));
  for (const auto *list : {&split.crossing, &graph.tangents})
    for (int slot : *list)
      cost.give(slot);
  OrderCost::Walk walk = cost.start();
  int found = -1;
  int64_t most = cap;
  for (int op : split.backward) {
    walk.peak = {};
    walk.run(op);
    if (graph.marks[op].forward || walk.peak.own <= most)
      continue;
    most = walk.peak.own;
    found =
        static_cast<int>(std::find(ops.begin(), ops.end(), op) - ops.begin());
  }
  return found;
}

} // namespace accel
