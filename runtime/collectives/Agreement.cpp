//===- Agreement.cpp - What all ranks must have alike ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/collectives/Agreement.h"

#include "runtime/collectives/RunningTime.h"
#include "runtime/collectives/Watchdog.h"

#include <nlohmann/json.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <cstdio>
#include <thread>

namespace accel::run {

namespace {

constexpr auto reminder = std::chrono::seconds(30);
constexpr int named = 3; // differences and ranks that a message names

/// Calls `done` until it is true. Throws AgreementError after `patience`; `who`
/// names what is waited for.
void await(const std::function<bool()> &done,
           const std::function<std::string()> &who, int rank,
           std::chrono::seconds patience) {
  RunningTime waiting;
  RunningTime::Clock::duration said{};
  auto pause = std::chrono::milliseconds(1);
  while (!done()) {
    const auto waited = waiting.look();
    if (waited > patience)
      throw AgreementError(who() + " did not come within " +
                           std::to_string(patience.count()) + " s");
    if (waited - said > reminder) {
      said = waited;
      std::fprintf(
          stderr, "accel-run: rank %d waits for %s (%lld of %lld s)\n", rank,
          who().c_str(),
          static_cast<long long>(
              std::chrono::duration_cast<std::chrono::seconds>(waited).count()),
          static_cast<long long>(patience.count()));
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(50));
  }
}

std::string shown(const Facts &facts, const std::string &name) {
  auto found = facts.find(name);
  if (found == facts.end())
    return "absent";
  const std::string &value = found->second;
  return value.size() > 80 ? value.substr(0, 77) + "..." : value;
}

} // namespace

std::string difference(const Facts &own, const Facts &first) {
  std::map<std::string, bool> names;
  for (const Facts *facts : {&own, &first})
    for (const auto &[name, value] : *facts)
      names[name] = true;
  std::string text;
  int count = 0;
  for (const auto &[name, unused] : names) {
    auto mine = own.find(name), theirs = first.find(name);
    if (mine != own.end() && theirs != first.end() &&
        mine->second == theirs->second)
      continue;
    if (++count <= named)
      text += (count > 1 ? "; " : "") + name + " is " + shown(own, name) +
              " here and " + shown(first, name) + " on rank 0";
  }
  if (count > named)
    text += "; and " + std::to_string(count - named) + " more";
  return text;
}

std::string agree(const Rendezvous &rendezvous, const Environment &environment,
                  const Facts &facts,
                  const std::function<std::string()> &decide,
                  std::chrono::seconds patience) {
  c10d::Store &store = *rendezvous.store();
  const int rank = environment.rank;
  std::string text;
  addToKey(store, beatKey(rank), 1); // from now on its silence counts
  if (rank != 0) {
    const auto who = [] { return std::string("rank 0"); };
    await([&] { return getKey(store, "agree/facts", text); }, who, rank,
          patience);
    Facts first;
    try {
      first = nlohmann::json::parse(text).get<Facts>();
    } catch (const nlohmann::json::exception &) {
      throw AgreementError("rank 0 has said something that is not accel-run's");
    }
    if (std::string different = difference(facts, first); !different.empty())
      throw AgreementError("was not given what rank 0 was given: " + different);
    setKey(store, "agree/rank/" + std::to_string(rank), "equal");
    addToKey(store, "agree/equal", 1);
    await([&] { return getKey(store, "agree/decision", text); }, who, rank,
          patience);
    return text;
  }
  setKey(store, "agree/facts", nlohmann::json(facts).dump());
  await(
      [&] {
        return addToKey(store, "agree/equal", 0) == environment.worldSize - 1;
      },
      [&] {
        std::string missing;
        int count = 0;
        for (int other = 1; other < environment.worldSize; ++other)
          if (!getKey(store, "agree/rank/" + std::to_string(other), text) &&
              ++count <= named)
            missing += (count > 1 ? ", " : "") + std::to_string(other);
        return (count == 1 ? "rank " : "ranks ") + missing +
               (count > named
                    ? " and " + std::to_string(count - named) + " more"
                    : "");
      },
      rank, patience);
  const std::string decision = decide();
  setKey(store, "agree/decision", decision);
  return decision;
}

} // namespace accel::run
