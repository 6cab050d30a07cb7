//===- Meeting.cpp - What ranks agree on before they start ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-run/Meeting.h"

#include "runtime/collectives/Groups.h"
#include "runtime/data/Resolve.h"
#include "runtime/data/SampleOrder.h"
#include "runtime/plan/PlanJson.h"
#include "runtime/plan/Sha256.h"
#include "tools/accel-run/Evaluation.h"
#include "tools/accel-run/Profile.h"

#include <nlohmann/json.hpp>
#include <torch/version.h>

namespace accel::run {

namespace {

/// Longer than any rank's start: a node that still pulls its image.
constexpr auto patience = std::chrono::minutes(5);
/// For what one machine has written to show on another.
constexpr auto delayOfFiles = std::chrono::seconds(10);

/// Leaves of a JSON value by their path.
void flatten(const nlohmann::json &value, const std::string &path,
             Facts &facts) {
  if (value.is_object())
    for (const auto &[key, inner] : value.items())
      flatten(inner, path + "." + key, facts);
  else if (value.is_array())
    for (size_t i = 0; i < value.size(); ++i)
      flatten(value[i], path + "[" + std::to_string(i) + "]", facts);
  else
    facts[path] = value.dump();
}

std::string hashOf(const nlohmann::json &value) {
  plan::Sha256 hash;
  hash.update(value.dump());
  return "sha256 " + hash.hexDigest().substr(0, 12);
}

std::string toText(const Start &start, const FolderLock &lock) {
  return nlohmann::json{{"run", start.run},
                        {"checkpoint", start.checkpoint},
                        {"mark", lock.mark()}}
      .dump();
}

} // namespace

Facts factsOf(const Input &input, const Options &options) {
  Facts facts = sharedOptions(options, profilesTogether(input.plan));
  facts["accel-run"] = ACCEL_VERSION;
  facts["torch"] = TORCH_VERSION;
  for (const std::string &variable : collectiveVariables(input.plan))
    facts[variable] = "1";
  const auto json = nlohmann::json::parse(plan::toJson(input.plan));
  for (const auto &[section, value] : json.items()) {
    if (section == "job")
      flatten(value, "job", facts);
    else if (section != "hash")
      facts["the plan's '" + section + "'"] =
          value.is_structured() ? hashOf(value) : value.dump();
  }
  // The plan names files; each rank opens what its own machine has there.
  const plan::Job &job = input.plan.job;
  for (const auto &[key, file] : dataFiles(job.data, input.baseDir))
    facts["the data's " + key] = file;
  for (const auto &[key, file] : dataFiles(job.evalData, input.baseDir))
    facts["the evaluation data's " + key] = file;
  return facts;
}

Start beginRun(const Input &input, const Options &options, RunLocks &locks) {
  if (options.calibrates()) // writes no folder
    return {};
  locks.folder = FolderLock(input.outDir);
  const plan::Job &job = input.plan.job;
  locks.log = LineLock("--log", options.log, "give another file with --log");
  if (Evaluation::isWanted(input.plan) && !job.evalPredictions.empty())
    locks.predictions = LineLock(
        "eval.predictions", resolvePath(job.evalPredictions, input.baseDir),
        "give another eval.predictions in job.yaml");
  if (!input.outDir.empty())
    tidy(input.outDir);
  Start start = chooseStart(input.outDir, options.resume);
  // A run that starts anew is recorded with its first checkpoint.
  if (!input.outDir.empty() &&
      (!start.checkpoint.empty() || isRecorded(input.outDir)))
    recordRun(input.outDir, start);
  return start;
}

Start meet(const Input &input, const Options &options,
           const Environment &environment, const Rendezvous &rendezvous,
           RunLocks &locks) {
  Start start;
  const std::string decided = agree(
      rendezvous, environment, factsOf(input, options),
      [&] {
        start = beginRun(input, options, locks);
        return toText(start, locks.folder);
      },
      patience);
  if (environment.rank == 0)
    return start;
  const auto json = nlohmann::json::parse(decided);
  start.run = json.at("run").get<std::string>();
  start.checkpoint = json.at("checkpoint").get<std::string>();
  // One path may be another folder on each machine, or from where each rank
  // was started: the first checkpoint would fail.
  const std::string mark = json.at("mark").get<std::string>();
  if (!mark.empty() && !awaitMark(input.outDir, mark, delayOfFiles))
    throw FileError("the checkpoint folder " + input.outDir +
                    " is not rank 0's: a folder that all ranks share is "
                    "needed; give one with --out DIR");
  return start;
}

} // namespace accel::run
