//===- Progress.h - How far the main thread of a rank is --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Each rank tells the others through the store where it is. Where a collective
// does not end, the rank that has not come to it is one that does not wait
// itself; of several, that which has made fewer steps.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_COLLECTIVES_PROGRESS_H
#define ACCEL_RUNTIME_COLLECTIVES_PROGRESS_H

#include "runtime/collectives/RunningTime.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace accel::run {

/// Where a rank is, as it says in the store.
struct Place {
  int64_t count = 0;       // places that it has come to
  bool waits = false;      // for other ranks
  double stillSeconds = 0; // of running, since it has last done anything
  std::string text;        // "step 12, train/57 reduce_scatter layers.4"

  std::string encode() const;
  /// Nothing where the text is no such place.
  static std::optional<Place> decode(const std::string &text);
};

/// The rank, of those in `places`, that the others wait for: one that does not
/// wait itself and has done nothing for `limit`, while another one waits for as
/// long. -1: all move, or all wait.
int missingRank(const std::vector<std::optional<Place>> &places,
                std::chrono::seconds limit);

/// Where all ranks stand, for a person, if each has waited for `limit` and they
/// have not come equally far: they wait in different collectives, or one does
/// not see that it need not wait any more, and none can be blamed. Those that
/// have done least come first. Else nothing.
std::string crossedWaits(const std::vector<std::optional<Place>> &places,
                         std::chrono::seconds limit);

/// Of this process. Entering a place costs two stores to memory.
class Progress {
public:
  static Progress &get();
  /// The main thread comes to a place. `label` must live as long as the
  /// process.
  void enter(const char *label) {
    name.store(label, std::memory_order_relaxed);
    count.fetch_add(1, std::memory_order_relaxed);
  }
  void setStep(int64_t number) { step.store(number); }
  /// It does something that other ranks may wait for long.
  void tick() { ticks.fetch_add(1, std::memory_order_relaxed); }
  /// While one lives, the main thread waits for other ranks.
  struct Waiting {
    Waiting() : before(get().waits.exchange(true)) {}
    ~Waiting() { get().waits.store(before); }
    bool before;
  };
  /// For the one thread that watches: where it is now.
  Place place();

private:
  std::atomic<const char *> name{"the start"};
  std::atomic<int64_t> count{0}, step{-1}, ticks{0};
  std::atomic<bool> waits{false};
  // The watching thread's.
  int64_t seen = -1;
  RunningTime still; // since it has moved
};

} // namespace accel::run

#endif // ACCEL_RUNTIME_COLLECTIVES_PROGRESS_H
