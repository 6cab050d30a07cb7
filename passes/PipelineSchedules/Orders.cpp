//===- Orders.cpp - The schedule of each kind -----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/PipelineSchedules/Schedule.h"

#include <algorithm>

namespace accel::pipeline {
namespace {

/// All kinds but zb-v: a rank warms up with forwards, goes on with a forward
/// and a backward in turns, and ends with backwards. The weights' parts follow
/// some backwards later.
struct Rhythm {
  int rank, ranks, chunks, microBatches;
  int round = 0;       // micro-batches of a chunk before it is the next one's
  int warmup = 0;      // forwards before the first backward's turn
  bool split = false;  // the backward has two parts
  int weightDelay = 0; // turns between them

  Action forward(int k) const {
    return {k / round % chunks * ranks + rank, microBatch(k), Pass::Forward};
  }
  Action backward(int k, Pass pass) const {
    return {(chunks - 1 - k / round % chunks) * ranks + rank, microBatch(k),
            pass};
  }
  std::vector<Action> order() const {
    const int turns = chunks * microBatches;
    std::vector<Action> order;
    int weights = 0;
    for (int k = 0; k < std::min(warmup, turns); ++k)
      order.push_back(forward(k));
    for (int k = 0; k < turns; ++k) {
      if (warmup + k < turns)
        order.push_back(forward(warmup + k));
      order.push_back(
          backward(k, split ? Pass::BackwardInput : Pass::Backward));
      if (split && k >= weightDelay)
        order.push_back(backward(weights++, Pass::BackwardWeight));
    }
    while (split && weights < turns)
      order.push_back(backward(weights++, Pass::BackwardWeight));
    return order;
  }

private:
  int microBatch(int k) const {
    return k / (round * chunks) * round + k % round;
  }
};

std::vector<Action> rhythmOf(const Problem &problem, int rank) {
  Rhythm rhythm = {rank, problem.ranks(), problem.chunks, problem.microBatches};
  const int hops = problem.ranks() - 1 - rank; // to the last rank
  const int rounds = std::max(1, problem.microBatches / problem.ranks());
  // Where there is one chunk, rounds make no difference.
  rhythm.round = problem.chunks == 1 ? problem.microBatches
                                     : problem.microBatches / rounds;
  const int otherChunks = (problem.chunks - 1) * rhythm.round;
  switch (problem.kind) {
  case Kind::GPipe:
    rhythm.warmup = problem.microBatches;
    break;
  case Kind::OneFOneB:
    rhythm.warmup = hops;
    break;
  case Kind::Interleaved:
    rhythm.warmup = otherChunks + 2 * hops;
    break;
  case Kind::ZbH1:
    // A rank keeps what its weights' parts read as long as the first rank
    // keeps its frames, so that no rank has more than 1F1B's first.
    rhythm.warmup = otherChunks + hops;
    rhythm.split = true;
    rhythm.weightDelay = rank;
    break;
  case Kind::ZbV:
    break;
  }
  return rhythm.order();
}

/// zb-v: the rank's first stage on the way there, its second on the way back.
class Vee {
public:
  Vee(const Problem &problem, int rank)
      : problem(problem), there(rank), back(problem.stages - 1 - rank) {}

  std::vector<Action> order() {
    const int ranks = problem.ranks();
    // The rhythm is that of a full pipeline; micro-batches beyond are left out.
    const int full = std::max(2 * ranks - 1, problem.microBatches);
    for (int i = 0; i < 2 * (ranks - there) - 1; ++i)
      run(there, Pass::Forward);
    for (int i = 0; i < there; ++i) {
      run(back, Pass::Forward);
      run(there, Pass::Forward);
    }
    for (int i = 0; i < ranks - there; ++i) {
      run(back, Pass::Forward);
      whole(back);
    }
    while (done(back, Pass::Forward) < done(there, Pass::Forward) ||
           done(there, Pass::Forward) < full) {
      if (done(there, Pass::Forward) < full)
        run(there, Pass::Forward);
      whole(there);
      run(back, Pass::Forward);
      whole(back);
    }
    for (int i = 0; i < there; ++i) {
      run(there, Pass::BackwardInput);
      run(back, Pass::BackwardInput);
    }
    for (int i = 0; i < ranks - there; ++i)
      whole(there);
    for (int stage : {back, there})
      while (done(stage, Pass::BackwardWeight) <
             done(stage, Pass::BackwardInput))
        run(stage, Pass::BackwardWeight);
    return std::move(actions);
  }

private:
  int &done(int stage, Pass pass) {
    return counts[stage == there ? 0 : 1][static_cast<size_t>(pass)];
  }
  void run(int stage, Pass pass) {
    const int microBatch = done(stage, pass)++;
    if (microBatch < problem.microBatches)
      actions.push_back({stage, microBatch, pass});
  }
  void whole(int stage) {
    run(stage, Pass::BackwardInput);
    run(stage, Pass::BackwardWeight);
  }

  const Problem &problem;
  int there, back; // stages
  int counts[2][4] = {};
  std::vector<Action> actions;
};

} // namespace

const char *toString(Pass pass) {
  switch (pass) {
  case Pass::Forward:
    return "forward";
  case Pass::Backward:
    return "backward";
  case Pass::BackwardInput:
    return "backward-input";
  case Pass::BackwardWeight:
    return "backward-weight";
  }
  return "";
}

std::string toString(const Action &action) {
  return std::string(toString(action.pass)) + " of stage " +
         std::to_string(action.stage) + ", micro-batch " +
         std::to_string(action.microBatch);
}

std::vector<int> countFrames(const Problem &problem, const Schedule &schedule) {
  std::vector<int> now(problem.stages, 0), most(problem.stages, 0);
  for (const std::vector<Action> &order : schedule.ranks)
    for (const Action &action : order) {
      if (action.pass == Pass::Forward)
        most[action.stage] = std::max(most[action.stage], ++now[action.stage]);
      else if (action.pass != Pass::BackwardInput)
        --now[action.stage];
    }
  return most;
}

std::vector<std::vector<std::vector<int>>> momentsOf(const Problem &problem,
                                                     const Schedule &schedule) {
  std::vector<std::vector<std::vector<int>>> result;
  for (const std::vector<Action> &order : schedule.ranks) {
    std::vector<std::vector<int>> &most = result.emplace_back();
    std::vector<int> now(problem.stages, 0);
    for (const Action &action : order) {
      if (action.pass != Pass::Forward) {
        now[action.stage] -= action.pass != Pass::BackwardInput;
        continue;
      }
      ++now[action.stage];
      auto within = [](const std::vector<int> &a, const std::vector<int> &b) {
        return std::equal(a.begin(), a.end(), b.begin(),
                          [](int one, int other) { return one <= other; });
      };
      if (std::any_of(most.begin(), most.end(),
                      [&](const auto &moment) { return within(now, moment); }))
        continue;
      std::erase_if(most,
                    [&](const auto &moment) { return within(moment, now); });
      most.push_back(now);
    }
  }
  return result;
}

Schedule makeSchedule(const Problem &problem) {
  Schedule schedule;
  for (int rank = 0; rank < problem.ranks(); ++rank)
    schedule.ranks.push_back(problem.kind == Kind::ZbV
                                 ? Vee(problem, rank).order()
                                 : rhythmOf(problem, rank));
  schedule.frames = countFrames(problem, schedule);
  return schedule;
}

} // namespace accel::pipeline
