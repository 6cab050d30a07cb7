//===- Reach.h - Waiting for the rank that serves ---------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_COLLECTIVES_REACH_H
#define ACCEL_RUNTIME_COLLECTIVES_REACH_H

#include <chrono>
#include <string>

namespace accel::run {

struct ReachLimits {
  std::chrono::milliseconds resolving; // until the name is known
  std::chrono::milliseconds serving;   // until someone listens there
  std::chrono::milliseconds first;     // the first line about the wait
  std::chrono::milliseconds again;     // the next ones
};
constexpr ReachLimits defaultReachLimits = {
    std::chrono::seconds(20), std::chrono::minutes(5), std::chrono::seconds(10),
    std::chrono::seconds(30)};

/// Returns once a TCP connection to `host` at `port` comes about, and says on
/// stderr, as `who`, what is waited for meanwhile. Throws CollectiveError with
/// the reason: a name that the resolver does not know, a refused connection, or
/// no answer.
void waitForServer(const std::string &host, int port, const std::string &who,
                   const ReachLimits &limits = defaultReachLimits);

} // namespace accel::run

#endif // ACCEL_RUNTIME_COLLECTIVES_REACH_H
