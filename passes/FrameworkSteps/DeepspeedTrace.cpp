//===- DeepspeedTrace.cpp - What stage 3 gathers and keeps ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/DeepspeedTrace.h"

#include <algorithm>
#include <utility>

namespace accel {

DeepspeedTrace::DeepspeedTrace(const StepLayout &layout,
                               const Candidate &candidate,
                               std::vector<Unit> elements)
    : units(std::move(elements)), zero(candidate.zero) {
  const int blocks = static_cast<int>(layout.blocks.size());
  std::vector<std::vector<int>> uses(blocks);
  for (int b = 0; b < blocks; ++b)
    for (int c = layout.blocks[b].begin; c < layout.blocks[b].end; ++c)
      for (int p : layout.model.calls[c].parameters)
        if (const int u = candidate.unitOf[p];
            std::ranges::find(uses[b], u) == uses[b].end())
          uses[b].push_back(u);
  auto add = [&](const std::vector<int> &own) {
    const int begin = static_cast<int>(trace.size());
    trace.insert(trace.end(), own.begin(), own.end());
    return Steps{begin, static_cast<int>(trace.size())};
  };
  forwards.resize(blocks);
  backwards.resize(blocks);
  for (int b = 0; b < blocks; ++b)
    forwards[b] = add(uses[b]);
  forwardEnd = static_cast<int>(trace.size());
  for (int b = blocks - 1; b >= 0; --b) {
    std::ranges::reverse(uses[b]);
    backwards[b] = add(uses[b]);
  }
  const int steps = static_cast<int>(trace.size());
  staysAfter.assign(steps, false);
  hereBefore.assign(steps, false);
  staying.assign(steps, 0);
  for (int s = 0; s < steps; ++s) {
    int64_t between = 0;
    for (int next = s + 1; next < steps && between < zero.reuseDistance;
         ++next) {
      if (trace[next] == trace[s]) {
        staysAfter[s] = hereBefore[next] = true;
        for (int t = s + 1; t < next; ++t)
          staying[t] += units[trace[s]].numel;
        break;
      }
      between += units[trace[next]].numel;
    }
  }
  for (int s = 0, ahead = 0; s < steps; ++s) {
    ahead = lookAhead(s, std::max(0, ahead - 1), /*trained=*/true);
    mostAhead = std::max(mostAhead, ahead);
  }
  for (int b = blocks - 1; b >= 0; --b)
    for (int s = forwards[b].begin; s < forwards[b].end; ++s)
      if (staysAfter[s])
        kept = blocks - b;
}

int DeepspeedTrace::lookAhead(int step, int ahead, bool trained) const {
  const int end = trained ? static_cast<int>(trace.size()) : forwardEnd;
  auto starts = [&](int s) { return !trained || !hereBefore[s]; };
  const Unit &own = units[trace[step]];
  int64_t live = own.numel + (trained ? staying[step] : 0);
  for (int s = step + 1; s <= step + ahead; ++s)
    live += starts(s) ? units[trace[s]].numel : 0;
  int64_t budget = zero.prefetchBucket * own.modules;
  while (budget > 0 && live < zero.liveParameters && step + ahead + 1 < end) {
    const int next = step + ++ahead;
    if (!starts(next))
      continue;
    live += units[trace[next]].numel;
    budget -= units[trace[next]].numel;
  }
  return ahead;
}

} // namespace accel
