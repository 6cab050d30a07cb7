//===- RunningTime.h - How long this process has waited ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_COLLECTIVES_RUNNINGTIME_H
#define ACCEL_RUNTIME_COLLECTIVES_RUNNINGTIME_H

#include <algorithm>
#include <chrono>

namespace accel::run {

/// The time since restart() that this process has run. While it is stopped
/// itself (SIGSTOP, a suspended job, a paused container) nothing shows whether
/// another one is alive: a job that is stopped as a whole, however long, goes
/// on as before. Whoever waits looks about every half second or more often;
/// what is longer than a second between two looks counts as a second.
class RunningTime {
public:
  using Clock = std::chrono::steady_clock;

  void restart(Clock::time_point now = Clock::now()) {
    last = now;
    total = {};
  }
  Clock::duration look(Clock::time_point now = Clock::now()) {
    total += std::min<Clock::duration>(now - last, std::chrono::seconds(1));
    last = now;
    return total;
  }

private:
  Clock::time_point last = Clock::now();
  Clock::duration total{};
};

} // namespace accel::run

#endif // ACCEL_RUNTIME_COLLECTIVES_RUNNINGTIME_H
