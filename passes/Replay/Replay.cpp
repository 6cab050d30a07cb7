//===- Replay.cpp - A job's tensors through the allocator -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Replay/Replay.h"

#include <algorithm>
#include <utility>

namespace accel::replay {

void Replay::play(const Problem &problem) {
  blockOf.resize(static_cast<size_t>(problem.tensors), -1);
  const size_t end = problem.dropped + problem.events.size();
  for (; played < end && so.failedEvent < 0; ++played) {
    const Event &event = problem.events[played - problem.dropped];
    switch (event.action) {
    case Action::Allocate:
      blockOf[event.tensor] = allocator.allocate(event.bytes, event.stream);
      tensors = std::max(tensors, event.tensor + 1);
      if (static_cast<size_t>(event.stream) >= so.reservedByStream.size())
        so.reservedByStream.resize(static_cast<size_t>(event.stream) + 1, 0);
      if (blockOf[event.tensor] < 0)
        so.failedEvent = static_cast<int>(played);
      break;
    case Action::Free:
      allocator.free(std::exchange(blockOf[event.tensor], -1));
      break;
    case Action::Park:
      allocator.park(blockOf[event.tensor]);
      break;
    case Action::Settle:
      allocator.settle(std::exchange(blockOf[event.tensor], -1));
      break;
    case Action::StepEnd:
      endStep();
      break;
    }
  }
}

void Replay::endStep() {
  const AllocatorStatistics &now = allocator.statistics();
  so.reservedPeakByStep.push_back(now.reservedPeak);
  so.retriesOfLastStep = now.retries - retriesBefore;
  retriesBefore = now.retries;
  Ends next;
  next.tensors = tensors;
  next.segmentsMade = now.segmentsMade;
  next.segmentsReturned = now.segmentsReturned;
  for (int t = 0; t < tensors; ++t)
    if (blockOf[t] >= 0)
      next.live.emplace_back(t, allocator.place(blockOf[t]));
  next.idle = allocator.idleBlocks();
  std::vector<Place> gone, made;
  for (const auto &[tensor, place] : last.live)
    if (blockOf[tensor] < 0)
      gone.push_back(place);
  for (const auto &[tensor, place] : next.live)
    if (tensor >= last.tensors)
      made.push_back(place);
  steady = gone == made && next.idle == last.idle &&
           next.segmentsMade == last.segmentsMade &&
           next.segmentsReturned == last.segmentsReturned;
  last = std::move(next);
}

Result Replay::result() const {
  Result result = so;
  result.statistics = allocator.statistics();
  for (size_t s = 0; s < result.reservedByStream.size(); ++s)
    result.reservedByStream[s] = allocator.reservedPeak(static_cast<int>(s));
  return result;
}

Result solve(const Problem &problem, const AllocatorRules &rules) {
  Replay replay(rules);
  replay.play(problem);
  return replay.result();
}

std::string verify(const Problem &problem) {
  enum class State : uint8_t { New, Live, Parked, Gone };
  std::vector<State> states(static_cast<size_t>(std::max(problem.tensors, 0)),
                            State::New);
  for (size_t i = 0; i < problem.events.size(); ++i) {
    const Event &event = problem.events[i];
    const std::string at = "event " + std::to_string(i);
    if (event.action == Action::StepEnd)
      continue;
    if (event.tensor < 0 || event.tensor >= problem.tensors)
      return at + " names a tensor out of range";
    State &state = states[event.tensor];
    switch (event.action) {
    case Action::Allocate:
      if (state != State::New)
        return at + " allocates a tensor a second time";
      if (event.stream < 0 || event.bytes < 0)
        return at + " has a stream or bytes below 0";
      state = State::Live;
      break;
    case Action::Free:
    case Action::Park:
      if (state != State::Live)
        return at + " frees a tensor that is not there";
      state = event.action == Action::Free ? State::Gone : State::Parked;
      break;
    case Action::Settle:
      if (state != State::Parked)
        return at + " settles a tensor that is not parked";
      state = State::Gone;
      break;
    case Action::StepEnd:
      break;
    }
  }
  return "";
}

std::string verify(const Problem &problem, const AllocatorRules &rules,
                   const Result &result) {
  std::vector<int64_t> bytes(static_cast<size_t>(problem.tensors), 0);
  std::vector<int> streamOf(static_cast<size_t>(problem.tensors), 0);
  std::vector<int64_t> level, peak;
  int64_t total = 0, most = 0;
  for (const Event &event : problem.events) {
    if (event.action == Action::StepEnd)
      continue;
    const int t = event.tensor;
    if (event.action == Action::Allocate) {
      bytes[t] = roundedSize(event.bytes, rules);
      streamOf[t] = event.stream;
      if (static_cast<size_t>(event.stream) >= level.size()) {
        level.resize(static_cast<size_t>(event.stream) + 1, 0);
        peak.resize(level.size(), 0);
      }
      level[event.stream] += bytes[t];
      peak[event.stream] = std::max(peak[event.stream], level[event.stream]);
      total += bytes[t];
      most = std::max(most, total);
    } else if (event.action != Action::Park) {
      level[streamOf[t]] -= bytes[t];
      total -= bytes[t];
    }
  }
  if (result.failedEvent >= 0)
    return "";
  if (result.statistics.reservedPeak < most)
    return "fewer bytes are reserved than the tensors need";
  for (size_t s = 0; s < peak.size(); ++s)
    if (s >= result.reservedByStream.size() ||
        result.reservedByStream[s] < peak[s])
      return "stream " + std::to_string(s) +
             " reserves fewer bytes than its tensors need";
  if (!std::is_sorted(result.reservedPeakByStep.begin(),
                      result.reservedPeakByStep.end()))
    return "the peak falls from one step to the next";
  return "";
}

} // namespace accel::replay
