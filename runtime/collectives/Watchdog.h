//===- Watchdog.h - When a rank fails, all end ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A rank that throws says why in the store; a rank that dies stops beating.
// Each rank's watchdog thread reads both and ends its process with the name and
// the reason of the rank that failed, within 30 seconds also where a collective
// would wait for ever (NCCL). It does not depend on a launcher that cleans up.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_COLLECTIVES_WATCHDOG_H
#define ACCEL_RUNTIME_COLLECTIVES_WATCHDOG_H

#include "runtime/collectives/Rendezvous.h"

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
  /// caused it, and ends the process with its name; returns if none was found.
  void findCulprit();
  /// All ranks have finished: rank 0 keeps the store open until they say so.
  void finish();

private:
  void watch(c10::intrusive_ptr<c10d::Store> store);
  [[noreturn]] void end(const std::string &message);

  Environment environment;
  const Rendezvous &rendezvous;
  std::mutex mutex;
  std::condition_variable wake;
  bool stopping = false;
  std::thread thread;
};

/// Exit code of a process that ends because of another rank.
constexpr int peerFailedExit = 1;

} // namespace accel::run

#endif // ACCEL_RUNTIME_COLLECTIVES_WATCHDOG_H
