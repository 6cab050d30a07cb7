//===- Simulate.cpp - Seconds and bytes of a schedule ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/PipelineSchedules/Simulate.h"

#include "passes/PipelineSchedules/Reads.h"

#include <algorithm>

namespace accel::pipeline {
namespace {

constexpr double never = -1;

int64_t peakOf(const std::vector<Action> &order, const Costs &costs) {
  int64_t now = 0, peak = 0;
  for (const Action &action : order) {
    const StageCost &cost = costs.stages[action.stage];
    if (action.pass == Pass::Forward)
      now += cost.frameBytes;
    else if (action.pass == Pass::BackwardInput)
      now += cost.weightOnlyBytes;
    peak = std::max(peak, now);
    if (action.pass == Pass::Backward)
      now -= cost.frameBytes;
    else if (action.pass == Pass::BackwardInput)
      now -= cost.inputOnlyBytes;
    else if (action.pass == Pass::BackwardWeight)
      now -= cost.frameBytes - cost.inputOnlyBytes + cost.weightOnlyBytes;
  }
  return peak;
}

RankTotals totalsOf(const std::vector<Action> &order,
                    const std::vector<Span> &spans, const Costs &costs,
                    double makespan) {
  RankTotals totals;
  for (const Action &action : order)
    totals.busy += costs.stages[action.stage].seconds(action.pass);
  totals.bubble = makespan - totals.busy;
  if (!spans.empty())
    totals.gaps = spans.back().end - spans.front().start - totals.busy;
  totals.peakBytes = peakOf(order, costs);
  return totals;
}

} // namespace

double StageCost::seconds(Pass pass) const {
  switch (pass) {
  case Pass::Forward:
    return forward;
  case Pass::Backward:
    return backwardInput + backwardWeight;
  case Pass::BackwardInput:
    return backwardInput;
  case Pass::BackwardWeight:
    return backwardWeight;
  }
  return 0;
}

double Simulation::bubbleShare() const {
  double bubble = 0;
  for (const RankTotals &rank : totals)
    bubble += rank.bubble;
  return makespan > 0 ? bubble / (makespan * static_cast<double>(totals.size()))
                      : 0;
}

std::optional<Simulation>
simulate(const Problem &problem, const Schedule &schedule, const Costs &costs) {
  const Values values(problem);
  std::vector<double> madeAt(values.count(), never);
  Simulation result;
  result.ranks.resize(schedule.ranks.size());
  for (bool any = true; any;) {
    any = false;
    for (int rank = 0; rank < static_cast<int>(schedule.ranks.size()); ++rank) {
      std::vector<Span> &spans = result.ranks[rank];
      while (spans.size() < schedule.ranks[rank].size()) {
        const Action &action = schedule.ranks[rank][spans.size()];
        double start = spans.empty() ? 0 : spans.back().end;
        if (const int read = values.readOfNeighbour(action); read >= 0) {
          if (madeAt[read] == never)
            break;
          const double wire = values.rankOf(read) == rank ? 0 : costs.transfer;
          start = std::max(start, madeAt[read] + wire);
        }
        const double end =
            start + costs.stages[action.stage].seconds(action.pass);
        if (const int made = values.made(action); made >= 0)
          madeAt[made] = end;
        spans.push_back({start, end});
        result.makespan = std::max(result.makespan, end);
        any = true;
      }
    }
  }
  for (size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    if (result.ranks[rank].size() != schedule.ranks[rank].size())
      return std::nullopt;
    result.totals.push_back(totalsOf(schedule.ranks[rank], result.ranks[rank],
                                     costs, result.makespan));
  }
  return result;
}

} // namespace accel::pipeline
