//===- SearchOrders.cpp - The fastest order, for tiny cases ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/PipelineSchedules/SearchOrders.h"

#include "passes/PipelineSchedules/Reads.h"

#include <algorithm>
#include <limits>

namespace accel::pipeline {
namespace {

constexpr double never = -1;
/// Sums of the same seconds in another order differ by less.
constexpr double rounding = 1e-12;

/// Appends actions in the order of (start, rank), which each schedule without
/// needless idling has exactly once; a prefix is left where no end of it is
/// faster than the best so far.
class Search {
public:
  Search(const Problem &problem, const Costs &costs, const OrderSearch &search)
      : problem(problem), costs(costs), options(search), values(problem),
        madeAt(values.count(), never),
        nextPass(size_t(problem.stages) * problem.microBatches, 0),
        inFlight(problem.stages, 0), free(problem.ranks(), 0),
        left(problem.ranks(), 0) {
    best.makespan = std::numeric_limits<double>::infinity();
    best.proven = true;
    now.ranks.resize(problem.ranks());
    passes = search.splitBackward
                 ? std::vector<Pass>{Pass::Forward, Pass::BackwardInput,
                                     Pass::BackwardWeight}
                 : std::vector<Pass>{Pass::Forward, Pass::Backward};
    for (int stage = 0; stage < problem.stages; ++stage)
      for (Pass pass : passes)
        left[problem.rankOf(stage)] +=
            problem.microBatches * costs.stages[stage].seconds(pass);
    actionsLeft = passes.size() * size_t(problem.stages) * problem.microBatches;
  }

  BestOrder run() {
    branch(0, -1);
    if (!best.schedule.ranks.empty())
      best.schedule.frames = countFrames(problem, best.schedule);
    return std::move(best);
  }

private:
  struct Choice {
    Action action;
    int rank;
    double start;
  };

  uint8_t &doneOf(const Action &action) {
    return nextPass[size_t(action.stage) * problem.microBatches +
                    action.microBatch];
  }

  /// What may come now: the next pass of a micro-batch in a stage, if what it
  /// reads was made.
  std::vector<Choice> choices(double since, int sinceRank) {
    std::vector<Choice> found;
    for (int stage = 0; stage < problem.stages; ++stage)
      for (int microBatch = 0; microBatch < problem.microBatches;
           ++microBatch) {
        Action action = {stage, microBatch, Pass::Forward};
        const size_t done = doneOf(action);
        if (done == passes.size())
          continue;
        action.pass = passes[done];
        const int rank = problem.rankOf(stage);
        double start = free[rank];
        if (const int read = values.readOfNeighbour(action); read >= 0) {
          if (madeAt[read] == never)
            continue;
          start = std::max(start, madeAt[read] + (values.rankOf(read) == rank
                                                      ? 0
                                                      : costs.transfer));
        }
        if (action.pass == Pass::Forward) {
          if (!options.frames.empty() &&
              inFlight[stage] >= options.frames[stage])
            continue;
          // Micro-batches are alike: the first stage begins them in order.
          if (stage == 0 && microBatch > 0 &&
              doneOf({0, microBatch - 1, Pass::Forward}) == 0)
            continue;
        }
        if (start < since || (start == since && rank <= sinceRank))
          continue;
        found.push_back({action, rank, start});
      }
    // Early ends first, so that a good schedule is found soon.
    std::stable_sort(
        found.begin(), found.end(),
        [](const Choice &a, const Choice &b) { return a.start < b.start; });
    return found;
  }

  /// No schedule that goes on from here ends before.
  double bound(double since) const {
    double bound = 0;
    for (int rank = 0; rank < problem.ranks(); ++rank)
      if (left[rank] > rounding)
        bound = std::max(bound, std::max(free[rank], since) + left[rank]);
      else
        bound = std::max(bound, free[rank]);
    for (int microBatch = 0; microBatch < problem.microBatches; ++microBatch)
      bound = std::max(bound, chainEnd(microBatch, since));
    return bound;
  }

  /// When the micro-batch is through, were it alone.
  double chainEnd(int microBatch, double since) const {
    const auto done = [&](int stage) {
      return nextPass[size_t(stage) * problem.microBatches + microBatch];
    };
    int stage = 0;
    while (stage < problem.stages && done(stage) > 0)
      ++stage;
    double end = since;
    if (stage > 0 && stage < problem.stages)
      end = std::max(end, madeAt[values.activation(stage - 1, microBatch)]);
    for (int at = stage; at < problem.stages; ++at)
      end += costs.stages[at].seconds(Pass::Forward);
    int back = problem.stages - 1;
    while (back >= 0 && done(back) > 1)
      --back;
    if (back >= 0 && back < problem.stages - 1)
      end = std::max(end, madeAt[values.gradient(back + 1, microBatch)]);
    for (int at = back; at >= 0; --at)
      end += costs.stages[at].seconds(passes[1]);
    if (done(0) < passes.size() && options.splitBackward)
      end += costs.stages[0].seconds(Pass::BackwardWeight);
    return end;
  }

  void branch(double since, int sinceRank) {
    if (++best.nodes > options.maxNodes) {
      best.proven = false;
      return;
    }
    if (actionsLeft == 0) {
      const double makespan = *std::max_element(free.begin(), free.end());
      if (makespan < best.makespan - rounding) {
        best.makespan = makespan;
        best.schedule.ranks = now.ranks;
      }
      return;
    }
    if (bound(since) >= best.makespan - rounding)
      return;
    for (const Choice &choice : choices(since, sinceRank)) {
      take(choice);
      branch(choice.start, choice.rank);
      giveBack(choice);
      if (!best.proven)
        return;
    }
  }

  void take(const Choice &choice) {
    const Action &action = choice.action;
    const double seconds = costs.stages[action.stage].seconds(action.pass);
    freeBefore.push_back(free[choice.rank]);
    free[choice.rank] = choice.start + seconds;
    left[choice.rank] -= seconds;
    if (const int made = values.made(action); made >= 0)
      madeAt[made] = free[choice.rank];
    ++doneOf(action);
    inFlight[action.stage] += flightOf(action.pass);
    now.ranks[choice.rank].push_back(action);
    --actionsLeft;
  }

  void giveBack(const Choice &choice) {
    const Action &action = choice.action;
    left[choice.rank] += costs.stages[action.stage].seconds(action.pass);
    free[choice.rank] = freeBefore.back();
    freeBefore.pop_back();
    if (const int made = values.made(action); made >= 0)
      madeAt[made] = never;
    --doneOf(action);
    inFlight[action.stage] -= flightOf(action.pass);
    now.ranks[choice.rank].pop_back();
    ++actionsLeft;
  }

  static int flightOf(Pass pass) {
    return pass == Pass::Forward ? 1 : pass == Pass::BackwardInput ? 0 : -1;
  }

  const Problem &problem;
  const Costs &costs;
  const OrderSearch &options;
  const Values values;
  std::vector<Pass> passes;
  std::vector<double> madeAt;    // by value
  std::vector<uint8_t> nextPass; // by stage and micro-batch
  std::vector<int> inFlight;     // by stage
  std::vector<double> free, left, freeBefore;
  size_t actionsLeft = 0;
  Schedule now;
  BestOrder best;
};

} // namespace

BestOrder bestOrder(const Problem &problem, const Costs &costs,
                    const OrderSearch &search) {
  return Search(problem, costs, search).run();
}

} // namespace accel::pipeline
