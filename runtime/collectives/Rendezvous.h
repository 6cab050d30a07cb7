//===- Rendezvous.h - The store that ranks meet at --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_COLLECTIVES_RENDEZVOUS_H
#define ACCEL_RUNTIME_COLLECTIVES_RENDEZVOUS_H

#include "runtime/collectives/Environment.h"

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <string>

namespace c10d {
class Store;
} // namespace c10d

namespace accel::run {

/// A key-value store of all ranks: TCPStore, served by rank 0 or, under
/// torchrun, by its agent. Keys of one job and restart do not meet another's.
class Rendezvous {
public:
  /// Connects; waits for the server up to `timeout`. Throws CollectiveError.
  Rendezvous(const Environment &environment, std::chrono::seconds timeout);
  ~Rendezvous();
  Rendezvous(const Rendezvous &) = delete;

  const c10::intrusive_ptr<c10d::Store> &store() const { return keys; }
  /// A second connection, for another thread.
  c10::intrusive_ptr<c10d::Store> connectAgain() const;

private:
  Environment environment;
  std::string prefix;
  c10::intrusive_ptr<c10d::Store> tcp, keys;
};

/// Plain-text access for the watchdog.
void setKey(c10d::Store &store, const std::string &key,
            const std::string &value);
/// False if the key is not there; never waits. Throws when the store is gone.
bool getKey(c10d::Store &store, const std::string &key, std::string &value);
/// The counter after adding `by`.
int64_t addToKey(c10d::Store &store, const std::string &key, int64_t by);

} // namespace accel::run

#endif // ACCEL_RUNTIME_COLLECTIVES_RENDEZVOUS_H
