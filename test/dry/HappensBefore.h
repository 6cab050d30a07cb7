//===- HappensBefore.h - Order of accesses on streams -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A race detector for work that is queued on streams. Each stream, and the
// host, has a vector clock (Mattern, Virtual time and global states of
// distributed systems, 1989); memory is a map of intervals with the last write
// and the reads since it. Two accesses of which one writes are a race where
// neither clock orders them. A program without control that depends on data
// needs one trace: what is ordered in it is ordered in every interleaving.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TEST_DRY_HAPPENSBEFORE_H
#define ACCEL_TEST_DRY_HAPPENSBEFORE_H

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace accel::dry {

/// A stream, or the host (0).
using Actor = int;
constexpr Actor host = 0;

/// Time of each actor; a missing one is 0.
class Clock {
public:
  uint64_t of(Actor actor) const {
    return static_cast<size_t>(actor) < times.size() ? times[actor] : 0;
  }
  void tick(Actor actor);
  /// Takes the later time of each actor.
  void join(const Clock &other);
  /// It is nowhere before `other`.
  bool includes(const Clock &other) const;

private:
  std::vector<uint64_t> times;
};

/// When something happened: ordered before a clock that has reached it.
struct Moment {
  Actor actor = host;
  uint64_t time = 0; // 0: never
  bool before(const Clock &clock) const {
    return time == 0 || clock.of(actor) >= time;
  }
};

class HappensBefore {
public:
  HappensBefore();

  /// `name` is how reports call it.
  Actor addStream(std::string name);

  /// The host queues an operation on a stream: what it has waited for is done.
  /// Accesses on the stream are this operation's until the next one.
  Moment enqueue(Actor stream);
  /// `event` now stands for all that is queued on the stream.
  void record(uint64_t event, Actor stream);
  /// What is queued on the stream from now on comes after the event. False
  /// where nothing was recorded: such a wait orders nothing.
  bool wait(Actor stream, uint64_t event);
  /// The host has waited for a stream, an event, everything.
  void synchronize(Actor stream);
  bool synchronizeEvent(uint64_t event);
  void synchronizeAll();
  void forgetEvent(uint64_t event) { events.erase(event); }
  /// Whether the host has waited for what the event stands for.
  bool hasPassed(uint64_t event) const;
  /// Whether the host has waited for the moment.
  bool isDone(const Moment &moment) const {
    return moment.before(clocks[host]);
  }

  /// Bytes [begin, end) are read or written by what was last queued on the
  /// stream. `what` names the access in reports.
  void access(Actor stream, uint64_t begin, uint64_t end, bool writes,
              const std::string &what);
  /// The parts of [begin, end) whose last write is none of those that `known`
  /// names, from the lowest address on; what nothing has written is among them.
  std::vector<std::pair<uint64_t, uint64_t>>
  writtenOtherwise(uint64_t begin, uint64_t end,
                   const std::vector<std::string> &known);
  /// The range is another one's from now on, after a wait for everything.
  void forget(uint64_t begin, uint64_t end);

  /// "KIND: 'A' on STREAM and 'B' on STREAM" -> how often.
  const std::map<std::string, int64_t> &races() const { return found; }
  int64_t raceCount() const { return total; }
  int64_t accessCount() const { return accesses; }
  const std::string &name(Actor actor) const { return names[actor]; }

private:
  struct Access : Moment {
    int what = 0; // index into `texts`
  };
  struct Shadow {
    Access write;
    std::vector<Access> reads; // one an actor, since the write
  };
  /// An interval begins at `at`, if there is one over it.
  void split(uint64_t at);
  int intern(const std::string &text);
  void race(const char *kind, const Access &first, const Access &second);

  std::vector<Clock> clocks; // by actor
  std::vector<std::string> names;
  std::map<uint64_t, Clock> events;
  std::map<uint64_t, Shadow> memory; // begin -> until the next begin
  std::map<std::string, int> textIndex;
  std::vector<std::string> texts;
  std::map<std::string, int64_t> found;
  int64_t total = 0, accesses = 0;
};

} // namespace accel::dry

#endif // ACCEL_TEST_DRY_HAPPENSBEFORE_H
