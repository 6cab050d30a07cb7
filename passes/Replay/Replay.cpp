//===- Replay.cpp - A job's tensors through the allocator -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Replay/Replay.h"

#include <algorithm>

namespace accel::replay {

Result solve(const Problem &problem, const AllocatorRules &rules) {
  CachingAllocator allocator(rules);
  Result result;
  std::vector<int> blockOf(static_cast<size_t>(problem.tensors), -1);
  int streams = 0;
  int64_t retriesBefore = 0;
  for (size_t i = 0; i < problem.events.size(); ++i) {
    const Event &event = problem.events[i];
    switch (event.action) {
    case Action::Allocate:
      blockOf[event.tensor] = allocator.allocate(event.bytes, event.stream);
      streams = std::max(streams, event.stream + 1);
      if (blockOf[event.tensor] < 0)
        result.failedEvent = static_cast<int>(i);
      break;
    case Action::Free:
      allocator.free(blockOf[event.tensor]);
      break;
    case Action::Park:
      allocator.park(blockOf[event.tensor]);
      break;
    case Action::Settle:
      allocator.settle(blockOf[event.tensor]);
      break;
    case Action::StepEnd:
      result.reservedPeakByStep.push_back(allocator.statistics().reservedPeak);
      result.retriesOfLastStep = allocator.statistics().retries - retriesBefore;
      retriesBefore = allocator.statistics().retries;
      break;
    }
    if (result.failedEvent >= 0)
      break;
  }
  result.statistics = allocator.statistics();
  for (int stream = 0; stream < streams; ++stream)
    result.reservedByStream.push_back(allocator.reservedPeak(stream));
  return result;
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
