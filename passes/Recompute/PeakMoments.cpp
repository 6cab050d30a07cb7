//===- PeakMoments.cpp - What a backward holds in its order ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Recompute/PeakMoments.h"

#include "passes/Recompute/JointOrder.h"

#include <algorithm>

namespace accel {

PeakMoments::PeakMoments(const JointGraph &graph, const RecomputeModel &model)
    : graph(graph), model(model), maker(makers(graph)),
      storageOf(graph.function.slots.size(), -1),
      madeAt(graph.marks.size(), -1), last(graph.function.slots.size(), -1),
      firstStage(graph.function.slots.size(), -1),
      returned(graph.function.slots.size()),
      ofParameter(graph.function.slots.size()),
      given(graph.function.slots.size()) {
  const plan::Function &function = graph.function;
  for (size_t s = 0; s < model.storages.size(); ++s)
    storageOf[model.storages[s].slot] = static_cast<int>(s);
  for (const JointGradient &gradient : graph.gradients) {
    if (gradient.ofParameter)
      ofParameter[gradient.slot] = true;
    else
      returned[function.slots[gradient.slot].base] = true;
  }
  for (int slot : graph.tangents)
    given[function.slots[slot].base] = true;
  const std::vector<bool> driven = drivenOps(graph);
  int stage = 0;
  for (int op :
       splitGraph(graph, SavedSet(graph.marks.size(), true), false).backward) {
    if (graph.marks[op].forward)
      continue;
    const int own = static_cast<int>(ops.size());
    if (static_cast<int>(begin.size()) == stage)
      begin.push_back(own);
    madeAt[op] = own;
    ops.push_back(op);
    stageOf.push_back(stage);
    for (const plan::Arg &arg : function.instructions[op].args) {
      const int base = function.slots[arg.slot].base;
      if (firstStage[base] < 0)
        firstStage[base] = stage;
      last[base] = own;
    }
    stage += driven[op];
  }
  for (size_t g = 0; g < begin.size(); ++g) {
    std::vector<bool> &list = read.emplace_back(model.storages.size());
    for (size_t s = 0; s < list.size(); ++s) {
      const int first = firstStage[model.storages[s].slot];
      list[s] = first >= 0 && first <= static_cast<int>(g);
    }
  }
}

PeakMoment PeakMoments::atOwn(int own) const {
  return at(stageOf[own], static_cast<int>(model.nodes.size()), own);
}

PeakMoment PeakMoments::atNode(int stage, int node) const {
  return at(stage, node, -1);
}

PeakMoment PeakMoments::at(int stage, int node, int own) const {
  const plan::Function &function = graph.function;
  PeakMoment moment;
  moment.stage = stage;
  moment.node = node;
  moment.own = own;
  // What own operations read from here on is there until then.
  const int here = own < 0 ? begin[stage] : own;
  for (size_t slot = 0; slot < function.slots.size(); ++slot) {
    if (function.slots[slot].base != static_cast<int>(slot))
      continue;
    const int64_t bytes = function.slotBytes(static_cast<int>(slot));
    const int op = maker[slot];
    const bool isRead = last[slot] >= here || returned[slot];
    if (op < 0) {
      moment.constant += given[slot] && (isRead || last[slot] < 0) ? bytes : 0;
    } else if (graph.marks[op].forward) {
      const int storage = storageOf[slot];
      if (storage < 0)
        continue;
      if (isRead && own >= 0 && read[stage][storage])
        moment.constant += bytes; // kept or repeated, it is there
      else if (isRead)
        moment.later.push_back(storage);
      else
        moment.maybe.push_back(storage);
    } else if (const int made = madeAt[op]; made >= 0 && made <= here) {
      const bool now =
          made == own && (last[slot] >= 0 || returned[slot] ||
                          (ofParameter[slot] && !graph.marks[op].intoPlace));
      const bool on = made < here && isRead;
      moment.constant += now || on ? bytes : 0;
    }
  }
  return moment;
}

std::vector<bool> PeakMoments::repeatedBy(int stage,
                                          const std::vector<bool> &kept) const {
  std::vector<bool> repeated(model.nodes.size());
  if (stage < 0)
    return repeated;
  for (size_t s = 0; s < kept.size(); ++s)
    if (read[stage][s] && !kept[s])
      repeated[model.storages[s].node] = true;
  for (size_t n = repeated.size(); n-- > 0;)
    if (repeated[n])
      for (int s : model.nodes[n].reads)
        if (!kept[s])
          repeated[model.storages[s].node] = true;
  return repeated;
}

int64_t PeakMoments::bytes(const PeakMoment &moment,
                           const std::vector<bool> &kept,
                           const std::vector<bool> &all,
                           const std::vector<bool> &before,
                           const std::vector<bool> &after) const {
  auto byNow = [&](int node) {
    return node <= moment.node ? after[node] : before[node];
  };
  auto isThere = [&](int s) {
    return kept[s] || byNow(model.storages[s].node);
  };
  int64_t total = moment.constant;
  for (int s : moment.later)
    total += isThere(s) ? model.storages[s].bytes : 0;
  for (int s : moment.maybe) {
    bool isRead = false;
    for (int reader : model.storages[s].readers)
      isRead |= all[reader] &&
                !(reader == moment.node ? before[reader] : byNow(reader));
    total += isRead && isThere(s) ? model.storages[s].bytes : 0;
  }
  return total;
}

int64_t PeakMoments::bytes(const PeakMoment &moment,
                           const std::vector<bool> &kept) const {
  return bytes(moment, kept, model.closure(kept),
               repeatedBy(moment.stage - 1, kept),
               repeatedBy(moment.stage, kept));
}

std::vector<PeakMoment> PeakMoments::fullest(const std::vector<bool> &kept,
                                             int64_t cap, size_t count) const {
  const std::vector<bool> all = model.closure(kept);
  std::vector<std::pair<int64_t, PeakMoment>> found;
  std::vector<bool> before = repeatedBy(-1, kept);
  for (size_t stage = 0; stage < begin.size(); ++stage) {
    const int g = static_cast<int>(stage);
    const std::vector<bool> after = repeatedBy(g, kept);
    std::pair<int64_t, PeakMoment> most{cap, {}};
    auto consider = [&](PeakMoment moment) {
      const int64_t held = bytes(moment, kept, all, before, after);
      if (held > most.first)
        most = {held, std::move(moment)};
    };
    for (size_t n = 0; n < after.size(); ++n)
      if (after[n] && !before[n])
        consider(atNode(g, static_cast<int>(n)));
    for (int own = begin[stage];
         own < static_cast<int>(ops.size()) && stageOf[own] == g; ++own)
      consider(atOwn(own));
    if (most.first > cap)
      found.push_back(std::move(most));
    before = after;
  }
  std::stable_sort(
      found.begin(), found.end(),
      [](const auto &a, const auto &b) { return a.first > b.first; });
  std::vector<PeakMoment> moments;
  for (size_t i = 0; i < std::min(count, found.size()); ++i)
    moments.push_back(std::move(found[i].second));
  return moments;
}

} // namespace accel
