//===- Recorder.h - The tensors of a step, one by one -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Writes down what a run allocates and frees as a problem for the allocator's
// replay (passes/Replay). The engine counts bytes by what they are for; here
// each tensor has a name, so that a block is freed where it was made. Bytes
// that an executor allocates and frees as one sum are matched by what they are
// for, their stream and their size, the latest first.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FRAMEWORKSTEPS_RECORDER_H
#define ACCEL_PASSES_FRAMEWORKSTEPS_RECORDER_H

#include "passes/Replay/Replay.h"

#include <deque>
#include <map>
#include <tuple>

namespace accel {

enum class Holding;
enum class Pool;

class Recorder {
public:
  /// Sizes of the tensors that a sum of bytes consists of; null: it is one.
  using Parts = const std::vector<int64_t> *;

  /// One tensor; -1 for no bytes.
  int make(int64_t bytes, Pool pool);
  /// Frees it, if it is one, and forgets its name.
  void drop(int &tensor);

  void allocate(Holding holding, int64_t bytes, Pool pool, Parts parts);
  void free(Holding holding, int64_t bytes, Pool pool);
  /// Freed, but in use on another stream until `settle`.
  void deferFree(Holding holding, int64_t bytes, Pool pool);
  /// The CPU thread has waited until the device freed what was deferred before
  /// the last `but` marks.
  void mark() { marks.push_back(static_cast<int>(deferred.size())); }
  void settle(size_t but);

  /// The optimizer makes its states when it first runs.
  bool defersStates = false;
  void makeStates();

  void endStep();

  const replay::Problem &problem() const { return result; }
  /// What was recorded is known: later events alone are kept.
  void dropEvents() { result.dropEvents(); }
  /// The memory of one recording serves the next.
  void reuse(replay::Problem &&old) {
    result = std::move(old);
    result.events.clear();
    result.tensors = 0;
    result.dropped = 0;
  }
  replay::Problem release() { return std::move(result); }
  /// Why the record cannot be replayed: bytes were freed that nobody had
  /// allocated; or "".
  const std::string &broken() const { return wrong; }

  /// Sums are not recorded: somebody names the tensors.
  bool silent = false;

private:
  using Key = std::tuple<int, int, int64_t>;
  using Group = std::vector<int>;
  Group take(Holding holding, int64_t bytes, Pool pool);

  replay::Problem result;
  std::map<Key, std::vector<Group>> groups;
  std::deque<int> deferred; // tensors
  std::deque<int> marks;    // sizes of `deferred`
  struct State {
    int64_t bytes;
    Pool pool;
    std::vector<int64_t> parts;
  };
  std::vector<State> unmadeStates;
  std::string wrong;
};

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKSTEPS_RECORDER_H
