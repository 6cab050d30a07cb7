//===- Verify.cpp - Whether a schedule can be executed --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/PipelineSchedules/Verify.h"

#include "passes/PipelineSchedules/Reads.h"

#include <algorithm>

namespace accel::pipeline {
namespace {

std::string onRank(const Action &action, int rank) {
  return toString(action) + " on rank " + std::to_string(rank);
}

/// Each action once, on its stage's rank, behind those of its own stage.
std::string checkActions(const Problem &problem, const Schedule &schedule) {
  if (static_cast<int>(schedule.ranks.size()) != problem.ranks())
    return "expected orders of " + std::to_string(problem.ranks()) +
           " ranks, got " + std::to_string(schedule.ranks.size());
  // By stage and micro-batch, a bit for each pass.
  std::vector<uint8_t> seen(size_t(problem.stages) * problem.microBatches, 0);
  constexpr auto bit = [](Pass pass) {
    return static_cast<uint8_t>(1 << static_cast<int>(pass));
  };
  for (int rank = 0; rank < problem.ranks(); ++rank)
    for (const Action &action : schedule.ranks[rank]) {
      if (action.stage < 0 || action.stage >= problem.stages ||
          action.microBatch < 0 || action.microBatch >= problem.microBatches)
        return onRank(action, rank) + ": expected stages below " +
               std::to_string(problem.stages) + " and micro-batches below " +
               std::to_string(problem.microBatches);
      if (problem.rankOf(action.stage) != rank)
        return onRank(action, rank) + ": the stage is on rank " +
               std::to_string(problem.rankOf(action.stage));
      uint8_t &done =
          seen[size_t(action.stage) * problem.microBatches + action.microBatch];
      // A whole backward is both of its parts.
      uint8_t same = bit(action.pass);
      if (action.pass == Pass::Backward)
        same |= bit(Pass::BackwardInput) | bit(Pass::BackwardWeight);
      else if (action.pass != Pass::Forward)
        same |= bit(Pass::Backward);
      if (done & same)
        return onRank(action, rank) + ": it was computed before";
      if (action.pass != Pass::Forward && !(done & bit(Pass::Forward)))
        return onRank(action, rank) + ": it reads its forward, which is later";
      if (action.pass == Pass::BackwardWeight &&
          !(done & bit(Pass::BackwardInput)))
        return onRank(action, rank) +
               ": it reads its backward-input, which is later";
      done |= bit(action.pass);
    }
  for (int stage = 0; stage < problem.stages; ++stage)
    for (int microBatch = 0; microBatch < problem.microBatches; ++microBatch) {
      const uint8_t done =
          seen[size_t(stage) * problem.microBatches + microBatch];
      for (Pass pass :
           {Pass::Forward, Pass::BackwardInput, Pass::BackwardWeight})
        if (!(done & bit(pass)) &&
            (pass == Pass::Forward || !(done & bit(Pass::Backward))))
          return onRank({stage, microBatch, pass}, problem.rankOf(stage)) +
                 " is missing";
    }
  return "";
}

/// Ranks that execute as far as they get.
class Run {
public:
  Run(const Problem &problem, const Schedule &schedule)
      : problem(problem), schedule(schedule), values(problem),
        next(problem.ranks(), 0), there(values.count(), false) {}

  std::string buffered() {
    advance([&](int rank) {
      const std::vector<Action> &order = schedule.ranks[rank];
      if (next[rank] == order.size())
        return false;
      const int read = values.readOfNeighbour(order[next[rank]]);
      if (read >= 0 && !there[read])
        return false;
      if (const int made = values.made(order[next[rank]++]); made >= 0)
        there[made] = true;
      return true;
    });
    return waiting([&](int rank) { return next[rank]; });
  }

  std::string blocking() {
    // `next` is the batch before an action, the last one behind all of them;
    // `there` is what was received or is being.
    std::vector<bool> posted(problem.ranks(), false);
    std::vector<bool> sent(values.count(), false);
    advance([&](int rank) {
      const std::vector<Action> &order = schedule.ranks[rank];
      if (next[rank] > order.size())
        return false;
      const int sends = sentBefore(rank, next[rank]);
      const int receives = receivedBefore(rank, next[rank]);
      const bool post = !posted[rank];
      if (sends >= 0)
        sent[sends] = true;
      if (receives >= 0)
        there[receives] = true;
      posted[rank] = true;
      if ((sends >= 0 && !there[sends]) || (receives >= 0 && !sent[receives]))
        return post;
      posted[rank] = false;
      ++next[rank];
      return true;
    });
    const bool done =
        std::all_of(schedule.ranks.begin(), schedule.ranks.end(),
                    [&, rank = 0](const std::vector<Action> &order) mutable {
                      return next[rank++] > order.size();
                    });
    if (done)
      return "";
    // The first that waits, and for whom; a send is waited for by its rank.
    for (int rank = 0;; ++rank) {
      const std::vector<Action> &order = schedule.ranks[rank];
      if (next[rank] > order.size())
        continue;
      const int sends = sentBefore(rank, next[rank]);
      const bool send = sends >= 0 && !there[sends];
      const int other = send ? values.readerOf(sends)
                             : values.rankOf(receivedBefore(rank, next[rank]));
      return "ranks wait for each other where sends block: rank " +
             std::to_string(rank) +
             (send ? " sends what was made by "
                   : " receives what is read by ") +
             toString(order[send ? next[rank] - 1 : next[rank]]) + ", rank " +
             std::to_string(other) + " is " +
             (next[other] < schedule.ranks[other].size()
                  ? "before " + toString(schedule.ranks[other][next[other]])
                  : std::string("at its end"));
    }
  }

private:
  /// Steps ranks until none can.
  template <typename Step> void advance(Step step) {
    for (bool any = true; any;) {
      any = false;
      for (int rank = 0; rank < problem.ranks(); ++rank)
        while (step(rank))
          any = true;
    }
  }
  int sentBefore(int rank, size_t at) const {
    if (at == 0)
      return -1;
    const int made = values.made(schedule.ranks[rank][at - 1]);
    const int reader = made < 0 ? -1 : values.readerOf(made);
    return reader < 0 || reader == rank ? -1 : made;
  }
  int receivedBefore(int rank, size_t at) const {
    if (at == schedule.ranks[rank].size())
      return -1;
    const int read = values.readOfNeighbour(schedule.ranks[rank][at]);
    return read < 0 || values.rankOf(read) == rank ? -1 : read;
  }
  template <typename At> std::string waiting(At at) const {
    for (int rank = 0; rank < problem.ranks(); ++rank) {
      if (at(rank) == schedule.ranks[rank].size())
        continue;
      const Action &action = schedule.ranks[rank][at(rank)];
      const int other = values.rankOf(values.readOfNeighbour(action));
      std::string text = "ranks wait for each other: rank " +
                         std::to_string(rank) + " in " + toString(action) +
                         " for rank " + std::to_string(other);
      if (at(other) < schedule.ranks[other].size() && other != rank)
        text +=
            ", which waits in " + toString(schedule.ranks[other][at(other)]);
      return text;
    }
    return "";
  }

  const Problem &problem;
  const Schedule &schedule;
  const Values values;
  std::vector<size_t> next; // by rank
  std::vector<bool> there;  // by value
};

std::string checkFrames(const Problem &problem, const Schedule &schedule) {
  if (static_cast<int>(schedule.frames.size()) != problem.stages)
    return "expected frames of " + std::to_string(problem.stages) +
           " stages, got " + std::to_string(schedule.frames.size());
  const std::vector<int> counted = countFrames(problem, schedule);
  for (int stage = 0; stage < problem.stages; ++stage)
    if (counted[stage] > schedule.frames[stage])
      return "stage " + std::to_string(stage) + " has " +
             std::to_string(counted[stage]) +
             " micro-batches in flight, declared are " +
             std::to_string(schedule.frames[stage]);
  return "";
}

} // namespace

std::string verify(const Problem &problem, const Schedule &schedule,
                   Messages messages) {
  if (std::string wrong = check(problem); !wrong.empty())
    return wrong;
  if (std::string wrong = checkActions(problem, schedule); !wrong.empty())
    return wrong;
  if (std::string wrong = checkFrames(problem, schedule); !wrong.empty())
    return wrong;
  Run run(problem, schedule);
  return messages == Messages::Buffered ? run.buffered() : run.blocking();
}

} // namespace accel::pipeline
