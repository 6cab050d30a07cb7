//===- State.cpp - state.json of a checkpoint -----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/State.h"

#include "runtime/checkpoint/Files.h"
#include "runtime/checkpoint/RunFolder.h"
#include "runtime/checkpoint/Safetensors.h"
#include "runtime/plan/JsonParse.h"
#include "runtime/plan/OutputModel.h"
#include "runtime/plan/Sha256.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <vector>

namespace accel::run {

using nlohmann::ordered_json;
namespace fs = std::filesystem;

namespace {

constexpr const char *stateFile = "state.json";
constexpr int format = 2;
/// Counts above this are not of a run: a step a microsecond for 35 years.
constexpr int64_t maxCount = int64_t(1) << 50;

std::string hashOf(const std::string &text) {
  plan::Sha256 hash;
  hash.update(text);
  return hash.hexDigest();
}

/// Reads numbers of state.json, each within its range.
struct Reader {
  const ordered_json &json;
  const std::string &path;

  [[noreturn]] void fail(const std::string &what) const {
    throw FileError(path + ": " + what);
  }
  int64_t count(const ordered_json &object, const char *key,
                int64_t least) const {
    const ordered_json &value = object.at(key);
    if (!value.is_number_integer() || value < least || value > maxCount)
      fail(std::string("'") + key + "' is " + value.dump() +
           ", and no run has written that: expected an integer of at " +
           (value.is_number_integer() && value > maxCount
                ? "most " + std::to_string(maxCount)
                : "least " + std::to_string(least)));
    return value.get<int64_t>();
  }
  double number(const ordered_json &object, const char *key, double least,
                double most) const {
    const ordered_json &value = object.at(key);
    const double result = value.is_number() ? value.get<double>() : NAN;
    if (!(result >= least && result <= most))
      fail(std::string("'") + key + "' is " + value.dump() +
           ", and no run has written that");
    return result;
  }
};

std::vector<ShardFile> readFiles(const Reader &read) {
  std::vector<ShardFile> files;
  for (const ordered_json &entry : read.json.at("files")) {
    ShardFile file;
    file.name = entry.at("name").get<std::string>();
    file.bytes = read.count(entry, "bytes", 0);
    file.sha256 = entry.at("sha256").get<std::string>();
    if (file.name.empty() || file.name.find('/') != std::string::npos)
      read.fail("'" + file.name + "' is not the name of a file beside it");
    files.push_back(std::move(file));
  }
  return files;
}

/// What to do without the checkpoint in `folder`.
std::string otherOf(const std::string &folder) {
  fs::path own = fs::path(folder).lexically_normal();
  if (!own.has_filename()) // a slash at the end
    own = own.parent_path();
  const StoredCheckpoint *before = nullptr;
  const std::vector<StoredCheckpoint> all =
      checkpointsIn(own.parent_path().string());
  for (const StoredCheckpoint &checkpoint : all) {
    if (fs::path(checkpoint.path).filename() == own.filename())
      return before ? "continue from the checkpoint before it: --resume " +
                          before->path
                    : "it is the run's oldest here: continue from a copy of it";
    if (!checkpoint.damaged)
      before = &checkpoint;
  }
  return "continue from another checkpoint";
}

/// state.json in `folder`, as its run has written it, without its hash. Throws
/// FileError.
ordered_json readWritten(const std::string &folder) {
  const std::string path = (fs::path(folder) / stateFile).string();
  File file(path, File::Mode::Read);
  if (file.size() > maxStateBytes)
    throw FileError(path + ": is too large to be a state.json");
  std::string text(file.size(), '\0');
  file.readAt(0, text.data(), text.size());
  try {
    // Within limits: deep nesting takes far more memory than the text. The
    // hash is of members in the order of the file, which this does not keep.
    plan::parseJson(text);
  } catch (const plan::JsonSyntaxError &error) {
    throw FileError(path + ": is damaged: " + error.position(text) + ": " +
                    error.message);
  }
  ordered_json json = ordered_json::parse(text, nullptr, false);
  if (!json.is_object())
    throw FileError(path + ": is damaged: it is not the JSON that was written");
  if (json.value("format", ordered_json()) != format)
    throw FileError(path + ": is of another format than " +
                    std::to_string(format) + ", which this accel-run reads");
  const ordered_json sha256 = json.value("sha256", ordered_json());
  json.erase("sha256");
  if (sha256 !=
      hashOf(json.dump(-1, ' ', false, ordered_json::error_handler_t::replace)))
    throw FileError(path +
                    ": is not what the run has written: its hash differs");
  return json;
}

} // namespace

CheckpointRun runOf(const std::string &folder) {
  try {
    return {readWritten(folder).at("run").get<std::string>(), false};
  } catch (const std::exception &) {
    // It is said where the checkpoint is read.
  }
  std::error_code code;
  for (const fs::directory_entry &entry :
       fs::directory_iterator(folder, code)) {
    if (entry.path().extension() != ".safetensors")
      continue;
    try {
      const File file(entry.path().string(), File::Mode::Read);
      const SafetensorsHeader header = readHeader(file);
      if (const auto run = header.metadata.find("run");
          run != header.metadata.end())
        return {run->second, true};
    } catch (const FileError &) {
      // Another shard may say it.
    }
  }
  return {"", true};
}

void writeState(const std::string &folder, const plan::Plan &plan,
                const TrainState &state, const std::vector<ShardFile> &files) {
  ordered_json json = {
      {"format", format},
      {"run", state.run},
      {"step", state.step},
      {"micro_batches", state.microBatch},
      {"micro_batch_size", plan.job.microBatch},
      {"optimizer_steps", state.optimizerSteps},
      {"scaler",
       {{"scale", state.scaler.scale}, {"good_steps", state.scaler.goodSteps}}},
      {"device", plan.device},
      {"ranks", plan.ranks()},
      {"tp", plan.axisSize("tp")},
      {"optimizer", plan.job.optimizer.name}};
  if (!state.samples.empty())
    json["samples"] = state.samples;
  if (state.evaluationDue)
    json["evaluation_due"] = true;
  json["files"] = ordered_json::array();
  for (const ShardFile &file : files)
    json["files"].push_back(
        {{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  json["sha256"] = hashOf(json.dump());
  writeTextDurably((fs::path(folder) / stateFile).string(),
                   json.dump(2) + "\n");
}

TrainState readState(const std::string &folder, const plan::Plan &plan,
                     std::vector<ShardFile> &files) {
  const std::string path = (fs::path(folder) / stateFile).string();
  try {
    ordered_json json;
    try {
      json = readWritten(folder);
    } catch (const FileError &error) {
      throw FileError(std::string(error.what()) + "; " + otherOf(folder));
    }
    const Reader read{json, path};
    TrainState state;
    state.run = json.at("run").get<std::string>();
    state.step = read.count(json, "step", 0);
    if (const std::string name = fs::path(folder).filename().string();
        name.rfind(plan::checkpointPrefix, 0) == 0 &&
        name != checkpointName(state.step))
      read.fail("is of step " + std::to_string(state.step) +
                ", and its folder is " + name);
    // A step takes a micro-batch on one rank at least.
    const int64_t count = read.count(json, "micro_batches", state.step);
    const int64_t size = read.count(json, "micro_batch_size", 1);
    int64_t samples = 0;
    if (__builtin_mul_overflow(count, size, &samples) || samples > maxCount)
      read.fail(std::to_string(count) + " micro-batches of " +
                std::to_string(size) + " samples are more than a run can have");
    if (samples % plan.job.microBatch != 0)
      read.fail(std::to_string(samples) +
                " samples are done, which micro-batches of " +
                std::to_string(plan.job.microBatch) + " cannot continue");
    state.microBatch = samples / plan.job.microBatch;
    state.optimizerSteps = read.number(json, "optimizer_steps", 0,
                                       static_cast<double>(state.step));
    if (state.optimizerSteps != std::floor(state.optimizerSteps))
      read.fail("'optimizer_steps' is not a whole number");
    const ordered_json &scaler = json.at("scaler");
    state.scaler.scale = read.number(scaler, "scale", 1e-300, 1e300);
    state.scaler.goodSteps = read.count(scaler, "good_steps", 0);
    state.device = json.value("device", plan.device);
    if (json.contains("tp"))
      state.tensorRanks = read.count(json, "tp", 1);
    if (json.contains("optimizer"))
      state.optimizer = json.at("optimizer").get<std::string>();
    if (json.contains("samples"))
      state.samples = json.at("samples").get<SampleOrder>();
    if (json.contains("evaluation_due"))
      state.evaluationDue = json.at("evaluation_due").get<bool>();
    files = readFiles(read);
    return state;
  } catch (const nlohmann::json::exception &error) {
    throw FileError(path + ": cannot be read: " + error.what());
  }
}

void verifyShard(const std::string &folder, const ShardFile &shard) {
  File file((fs::path(folder) / shard.name).string(), File::Mode::Read);
  if (file.size() != shard.bytes)
    throw FileError(file.path() + ": has " + std::to_string(file.size()) +
                    " bytes, and state.json says " +
                    std::to_string(shard.bytes) + "; " + otherOf(folder));
  if (sha256Of(file) != shard.sha256)
    throw FileError(file.path() +
                    ": is damaged: its SHA-256 is not the one that was "
                    "written; " +
                    otherOf(folder));
}

} // namespace accel::run
