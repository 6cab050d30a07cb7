//===- Watchdog.cpp - When a rank fails, all end --------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/collectives/Watchdog.h"

#include "runtime/collectives/RankNames.h"

#include "runtime/collectives/Backend.h"
#include "runtime/collectives/Progress.h"
#include "runtime/collectives/RunningTime.h"
#include "runtime/collectives/StopSignal.h"

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <algorithm>
#include <cstdio>
#include <unistd.h>

namespace accel::run {

namespace {
constexpr auto poll = std::chrono::milliseconds(500);
/// A launcher that has seen a rank go asks the others to end: the one that has
/// gone is not given the time of one that may only be slow. Gloo can leave a
/// send to it waiting without an error.
constexpr std::chrono::seconds silenceWhileStopping{5};
constexpr const char *failedKey = "failed";
} // namespace

static std::string placeKey(int rank) {
  return "place/" + std::to_string(rank);
}

std::string beatKey(int rank) { return "beat/" + std::to_string(rank); }

Watchdog::Watchdog(const Environment &environment, const Rendezvous &rendezvous)
    : environment(environment), rendezvous(rendezvous),
      silence(environment.silence) {
  guarding = std::thread([this] { guard(); });
  try {
    watching = std::thread([this] { watch(); });
  } catch (...) {
    stopGuard();
    throw;
  }
}

void Watchdog::stopGuard() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    stoppingGuard = true;
  }
  wake.notify_all();
  guarding.join();
}

Watchdog::~Watchdog() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    stopping = true;
  }
  wake.notify_all();
  watching.join(); // the guard ends the process where this would hang
  stopGuard();
}

void Watchdog::end(const std::string &message) {
  endIfAskedBefore();
  std::fprintf(stderr, "accel-run: rank %d stops: %s\n", environment.rank,
               message.c_str());
  std::fflush(nullptr);
  // Other threads may hang in a collective: nothing is destroyed. Rank 0 holds
  // the store a little longer, for the others to read the reason.
  if (environment.rank == 0 && !environment.storeIsServed)
    std::this_thread::sleep_for(4 * poll);
  _exit(peerFailedExit);
}

void Watchdog::guard() {
  uint64_t last = 0;
  RunningTime quiet;
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(mutex);
      if (wake.wait_for(lock, poll, [this] { return stoppingGuard; }))
        return;
    }
    const uint64_t now = answers.load(std::memory_order_relaxed);
    if (now != last)
      quiet.restart();
    last = now;
    if (quiet.look() > silence)
      end(std::string(environment.storeIsServed
                          ? "the launcher's store"
                          : rankName(0) + " (it serves the store)") +
          " at " + environment.masterAddress + ":" +
          std::to_string(environment.masterPort) +
          " gave no sign of life for " + std::to_string(silence.count()) +
          " s: it is stopped, or its machine cannot be reached");
  }
}

std::string Watchdog::findHung(c10d::Store &store, const Place &own) {
  setKey(store, placeKey(environment.rank), own.encode());
  const std::chrono::seconds limit = collectiveTimeout();
  if (!own.waits || own.stillSeconds < static_cast<double>(limit.count()))
    return "";
  std::vector<std::optional<Place>> places(environment.worldSize);
  for (int rank = 0; rank < environment.worldSize; ++rank)
    if (std::string text; getKey(store, placeKey(rank), text))
      places[rank] = Place::decode(text);
  places[environment.rank] = own;
  const int missing = missingRank(places, limit);
  if (missing < 0)
    return crossedWaits(places, limit);
  return rankName(missing) + ": has done nothing for " +
         std::to_string(static_cast<int>(places[missing]->stillSeconds)) +
         " s at " + places[missing]->text + "; " + rankName(environment.rank) +
         " waits for it at " + own.text;
}

void Watchdog::watch() {
  c10::intrusive_ptr<c10d::Store> store;
  // A ring: everyone watches the next one.
  const int next = (environment.rank + 1) % environment.worldSize;
  const std::string own = beatKey(environment.rank);
  const std::string theirs = beatKey(next);
  std::string last;
  RunningTime silent;
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(mutex);
      if (wake.wait_for(lock, poll, [this] { return stopping; }))
        return;
    }
    try {
      heard();
      if (!store)
        store = rendezvous.connectAgain();
      std::string text;
      if (getKey(*store, failedKey, text)) {
        const std::string self = rankName(environment.rank) + ": ";
        if (text.compare(0, self.size(), self) != 0)
          end(text);
        if (reported)
          continue;                    // its main thread ends it
        end(text.substr(self.size())); // what another rank has found
      }
      addToKey(*store, own, 1);
      if (text = findHung(*store, Progress::get().place()); !text.empty()) {
        setKey(*store, failedKey, text);
        end(text);
      }
      std::string beat;
      getKey(*store, theirs, beat);
      // A rank that has not come yet is waited for elsewhere (Agreement.h).
      if (beat != last || beat.empty()) {
        last = beat;
        silent.restart();
      } else if (const auto limit =
                     stopAsked() ? std::min(silence, silenceWhileStopping)
                                 : silence;
                 silent.look() > limit) {
        text = rankName(next) + ": gave no sign of life for " +
               std::to_string(limit.count()) + " s";
        setKey(*store, failedKey, text);
        end(text);
      }
    } catch (const std::exception &) {
      {
        std::lock_guard<std::mutex> lock(mutex);
        if (stopping)
          return;
      }
      end(environment.storeIsServed
              ? "lost the launcher's store: the job has been ended"
              : "lost " + rankName(0) +
                    " (it served the store): it has ended or its machine "
                    "cannot be reached");
    }
  }
}

void Watchdog::report(const std::string &reason) {
  reported = true;
  try {
    auto store = rendezvous.connectAgain();
    std::string text;
    if (!getKey(*store, failedKey, text))
      setKey(*store, failedKey, rankName(environment.rank) + ": " + reason);
    // Whoever serves the store stays until the others have read it.
    if (environment.rank == 0 && !environment.storeIsServed)
      std::this_thread::sleep_for(4 * poll);
  } catch (const std::exception &) {
    // No store, no one to tell: the others see that themselves.
  }
}

void Watchdog::findCulprit() {
  // The thread ends the process as soon as it knows. A launcher that has seen
  // the rank go, as torchrun does, asks the others to end: it names the rank.
  RunningTime waited;
  while (waited.look() < silence + std::chrono::seconds(4) && !stopAsked())
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

void Watchdog::finish() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    stopping = true;
  }
  wake.notify_all();
  auto store = rendezvous.connectAgain();
  addToKey(*store, "finished", 1);
  setKey(*store, "finished/" + std::to_string(environment.rank), "");
  if (environment.rank != 0 || environment.storeIsServed)
    return;
  RunningTime waited;
  while (addToKey(*store, "finished", 0) < environment.worldSize) {
    heard();
    if (waited.look() > silence)
      for (int rank = 0; rank < environment.worldSize; ++rank)
        if (std::string text;
            !getKey(*store, "finished/" + std::to_string(rank), text))
          end(rankName(rank) + ": gave no sign of life for " +
              std::to_string(silence.count()) + " s after its last step");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

} // namespace accel::run
