//===- Replay.h - A job's tensors through the allocator ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What the caching allocator holds of the device for a given order of tensors:
// plain events in, bytes out. The order is that in which the framework's CPU
// thread asks and frees, which is what the allocator sees.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_REPLAY_REPLAY_H
#define ACCEL_PASSES_REPLAY_REPLAY_H

#include "passes/Replay/CachingAllocator.h"

namespace accel::replay {

enum class Action : uint8_t {
  Allocate,
  Free,
  /// The tensor is gone, its block serves again after Settle (record_stream).
  Park,
  Settle,
  StepEnd // of an optimizer step
};

struct Event {
  Action action = Action::Allocate;
  int stream = 0;
  int tensor = -1;   // names from 0 on; each is allocated once
  int64_t bytes = 0; // Allocate
};

struct Problem {
  std::vector<Event> events;
  int tensors = 0; // names below this
  /// Events of the job before the first of `events`: they were played, and are
  /// no longer kept.
  size_t dropped = 0;
  void dropEvents() {
    dropped += events.size();
    events.clear();
  }
};

struct Result {
  AllocatorStatistics statistics;
  /// Peaks by stream; their sum is at least statistics.reservedPeak.
  std::vector<int64_t> reservedByStream;
  /// Peak and end of segments after each step.
  std::vector<int64_t> reservedPeakByStep;
  /// Retries of the last step: what the job does in each step from then on.
  int64_t retriesOfLastStep = 0;
  /// The event for which the device had no room, or -1.
  int failedEvent = -1;
};

/// A problem that is played as its steps are recorded.
class Replay {
public:
  explicit Replay(const AllocatorRules &rules) : allocator(rules) {}

  /// Plays the events behind those that were played.
  void play(const Problem &problem);
  /// From here on the device has so many bytes for segments; it has at most as
  /// many now.
  void setCapacity(int64_t bytes) { allocator.setCapacity(bytes); }
  /// The last step made and returned no segment, left each idle block as it
  /// was, and put each tensor that it made in place of one that it freed, in
  /// their order: steps that are alike change nothing any more.
  bool settled() const { return steady; }
  Result result() const;

private:
  using Place = std::pair<int64_t, int64_t>; // address, bytes
  /// At the end of a step.
  struct Ends {
    std::vector<std::pair<int, Place>> live;          // by the tensor's name
    int tensors = 0;                                  // names below this
    std::vector<std::vector<IdleBlocks::Entry>> idle; // by pool
    int64_t segmentsMade = -1, segmentsReturned = 0;
  };
  void endStep();

  CachingAllocator allocator;
  std::vector<int> blockOf; // of each tensor that was not freed
  size_t played = 0;        // events
  int64_t retriesBefore = 0;
  int tensors = 0; // names below this were allocated
  Ends last;
  bool steady = false;
  Result so;
};

/// Linear in the events but for a logarithm of the idle blocks.
Result solve(const Problem &problem, const AllocatorRules &rules);

/// What is wrong with the problem (a tensor freed that is not there, a stream
/// below 0, names out of range), or "".
std::string verify(const Problem &problem);

/// What is wrong with a result, from the problem alone: fewer bytes than the
/// tensors of a stream at their peak, a peak that falls; or "".
std::string verify(const Problem &problem, const AllocatorRules &rules,
                   const Result &result);

} // namespace accel::replay

#endif // ACCEL_PASSES_REPLAY_REPLAY_H
