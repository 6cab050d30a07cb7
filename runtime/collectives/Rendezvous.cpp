//===- Rendezvous.cpp - The store that ranks meet at ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/collectives/Rendezvous.h"

#include "runtime/collectives/Backend.h"
#include "runtime/collectives/Reach.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <cstdlib>
#include <memory>

namespace accel::run {

namespace {
c10::intrusive_ptr<c10d::Store> open(const Environment &environment, bool serve,
                                     std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(environment.masterPort);
  options.isServer = serve;
  options.waitWorkers = false;
  options.timeout = timeout;
  if (serve && environment.storeSocket)
    options.masterListenFd = *environment.storeSocket;
  try {
    return c10::make_intrusive<c10d::TCPStore>(environment.masterAddress,
                                               options);
  } catch (const std::exception &error) {
    throw CollectiveError(
        "rank " + std::to_string(environment.rank) + " of " +
        std::to_string(environment.worldSize) + " cannot meet the others at " +
        environment.masterAddress + ":" +
        std::to_string(environment.masterPort) + ": " + plainMessage(error));
  }
}
} // namespace

Rendezvous::Rendezvous(const Environment &environment,
                       std::chrono::seconds timeout)
    : environment(environment) {
  const char *restart = std::getenv("TORCHELASTIC_RESTART_COUNT");
  prefix = std::string("accel-run/") + (restart ? restart : "0");
  const bool serve = environment.rank == 0 && !environment.storeIsServed;
  if (serve) {
    tcp = open(environment, serve, timeout);
  } else {
    // TCPStore says nothing while it waits, for the server or for its answer.
    const std::string who = "rank " + std::to_string(environment.rank);
    Server server{environment.masterAddress, environment.masterPort};
    if (environment.storeIsServed)
      server.name = "the launcher's store";
    waitForServer(server, who);
    auto opened =
        std::make_shared<c10::intrusive_ptr<c10d::Store>>(); // the thread's too
    awaitAnswer(server, who, [environment, timeout, opened] {
      *opened = open(environment, false, timeout);
    });
    tcp = *opened;
  }
  keys = c10::make_intrusive<c10d::PrefixStore>(prefix, tcp);
}

Rendezvous::~Rendezvous() = default;

c10::intrusive_ptr<c10d::Store> Rendezvous::connectAgain() const {
  // Short: the watchdog must notice a server that has gone.
  return c10::make_intrusive<c10d::PrefixStore>(
      prefix, open(environment, false, std::chrono::seconds(10)));
}

void setKey(c10d::Store &store, const std::string &key,
            const std::string &value) {
  store.set(key, std::vector<uint8_t>(value.begin(), value.end()));
}

bool getKey(c10d::Store &store, const std::string &key, std::string &value) {
  if (!store.check({key}))
    return false;
  std::vector<uint8_t> bytes = store.get(key);
  value.assign(bytes.begin(), bytes.end());
  return true;
}

int64_t addToKey(c10d::Store &store, const std::string &key, int64_t by) {
  return store.add(key, by);
}

} // namespace accel::run
