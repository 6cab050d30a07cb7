//===- Reach.h - Waiting for the rank that serves ---------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_COLLECTIVES_REACH_H
#define ACCEL_RUNTIME_COLLECTIVES_REACH_H

#include <chrono>
#include <functional>
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

/// Where the store is, and who serves it.
struct Server {
  std::string host;
  int port = 0;
  std::string name = "rank 0";
};

/// Returns once a TCP connection to the server comes about, and says on stderr,
/// as `who`, what is waited for meanwhile. Throws CollectiveError with the
/// reason: a name that the resolver does not know, a refused connection, or
/// none.
void waitForServer(const Server &server, const std::string &who,
                   const ReachLimits &limits = defaultReachLimits);

/// Returns once `ask`, which waits for an answer of that server, has returned,
/// or throws what it throws; says and throws as waitForServer meanwhile: the
/// system of a server that is stopped still accepts connections. `ask` runs in
/// a thread of its own, and where this throws it may run on.
void awaitAnswer(const Server &server, const std::string &who,
                 std::function<void()> ask,
                 const ReachLimits &limits = defaultReachLimits);

} // namespace accel::run

#endif // ACCEL_RUNTIME_COLLECTIVES_REACH_H
