//===- Meeting.cpp - What ranks agree on before they start ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-run/Meeting.h"

#include <nlohmann/json.hpp>

namespace accel::run {

namespace {

/// Longer than any rank's start: a node that still pulls its image.
constexpr auto patience = std::chrono::minutes(5);

std::string toText(const Start &start) {
  return nlohmann::json{{"run", start.run}, {"checkpoint", start.checkpoint}}
      .dump();
}

} // namespace

Start beginRun(const Input &input, const Options &options) {
  Start start = chooseStart(input.outDir, options.resume);
  if (!input.outDir.empty())
    recordRun(input.outDir, start);
  return start;
}

Start meet(const Input &input, const Options &options,
           const Environment &environment, const Rendezvous &rendezvous) {
  Start start;
  const std::string decided = agree(
      rendezvous, environment, Facts(),
      [&] {
        start = beginRun(input, options);
        return toText(start);
      },
      patience);
  if (environment.rank == 0)
    return start;
  const auto json = nlohmann::json::parse(decided);
  start.run = json.at("run").get<std::string>();
  start.checkpoint = json.at("checkpoint").get<std::string>();
  return start;
}

} // namespace accel::run
