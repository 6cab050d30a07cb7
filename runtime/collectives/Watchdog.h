//===- Watchdog.h - When a rank fails, all end ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A rank that throws says why in the store; a rank that dies stops beating.
// Each rank's watchdog thread reads both and ends its process with the name and
// the reason of the rank that failed, within 30 seconds also where a collective
// would wait for ever (NCCL). A rank that beats and does not go on, so that the
// others wait in a collective longer than collectiveTimeout(), is named too,
// with the instruction. It does not depend on a launcher that cleans up. A
// second thread watches the first: calls of the store wait for ever where the
// rank that serves it is stopped or its machine has gone without a word.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_COLLECTIVES_WATCHDOG_H
#define ACCEL_RUNTIME_COLLECTIVES_WATCHDOG_H

#include "runtime/collectives/Progress.h"
#include "runtime/collectives/Rendezvous.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace accel::run {

class Watchdog {
public:
  Watchdog(const Environment &environment, const Rendezvous &rendezvous);
  /// Stops watching without a word: all ranks are past their last collective.
  ~Watchdog();

  /// Tells the others that this rank failed of its own accord.
  void report(const std::string &reason);
  /// After a failed collective: gives the watch time to find the rank that
  /// caused it, and ends the process with its name; returns if none was found,
  /// or a signal asks this rank to end.
  void findCulprit();
  /// All ranks have finished: rank 0 keeps the store open until they say so.
  void finish();

private:
  /// The store has answered.
  void heard() { answers.fetch_add(1, std::memory_order_relaxed); }
  /// Ends the process where the store does not answer any more.
  void guard();
  void stopGuard();
  void watch();
  /// Tells the others where this rank is. What to say of the rank that this one
  /// has waited for too long, or of all where all wait; or nothing.
  std::string findHung(c10d::Store &store, const Place &own);
  [[noreturn]] void end(const std::string &message);

  Environment environment;
  const Rendezvous &rendezvous;
  std::mutex mutex;
  std::condition_variable wake;
  bool stopping = false;      // of `watching`
  bool stoppingGuard = false; // of `guarding`
  std::chrono::seconds silence;
  std::atomic<uint64_t> answers{0};
  std::atomic<bool> reported{false}; // why this rank fails
  std::thread guarding, watching;
};

/// Key of the counter by which a rank shows that it lives; absent: it has not
/// come yet.
std::string beatKey(int rank);

/// Exit code of a process that ends because of another rank.
constexpr int peerFailedExit = 1;

} // namespace accel::run

#endif // ACCEL_RUNTIME_COLLECTIVES_WATCHDOG_H
