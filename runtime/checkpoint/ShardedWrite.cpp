//===- ShardedWrite.cpp - Writing checkpoints -----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/Pieces.h"
#include "runtime/checkpoint/RunFolder.h"
#include "runtime/checkpoint/Safetensors.h"
#include "runtime/checkpoint/Sharded.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>

namespace accel::run {

using nlohmann::ordered_json;
namespace fs = std::filesystem;

namespace {

constexpr const char *partial = ".partial";

/// This rank's file: tensor "<unit>.param" and one for each state.
void writeShards(Executor &executor, const std::string &path) {
  const plan::Plan &plan = executor.plan();
  SafetensorsHeader header;
  ordered_json layout = ordered_json::array();
  struct Item {
    at::Tensor flat;
    size_t tensor;
  };
  std::vector<Item> items;
  for (size_t u = 0; u < plan.units.size(); ++u) {
    UnitStorage &unit = executor.unit(u);
    if (!writesUnit(plan, unit.unit(), executor.groups().mesh()))
      continue;
    const int64_t numel = unit.shard().numel();
    const std::string prefix = std::to_string(u) + ".";
    items.push_back({unit.shard(), header.tensors.size()});
    header.tensors.push_back(
        {prefix + "param", unit.unit().storage, {numel}, 0});
    for (int i = 0; i < unit.numStates(); ++i) {
      const plan::State &state = unit.unit().states[i];
      items.push_back({unit.state(i), header.tensors.size()});
      header.tensors.push_back({prefix + state.name, state.dtype, {numel}, 0});
    }
    ordered_json pieces = ordered_json::array();
    for (const Piece &piece :
         piecesOf(plan, unit.unit(), unit.shardBegin(), unit.shardEnd())) {
      const plan::Parameter &p = plan.parameters[piece.parameter];
      pieces.push_back({{"fqn", p.fqn},
                        {"shape", p.shape},
                        {"begin", piece.begin},
                        {"end", piece.end},
                        {"offset", piece.offset}});
    }
    layout.push_back({{"prefix", prefix}, {"pieces", std::move(pieces)}});
  }
  if (items.empty())
    return;
  header.metadata["format"] = "accel-run-1";
  header.metadata["layout"] = layout.dump();
  const std::string head = layOut(header);
  File file(path, File::Mode::Create);
  file.reserve(header.fileBytes);
  file.writeAt(0, head.data(), head.size());
  for (const Item &item : items) {
    const StoredTensor &tensor = header.tensors[item.tensor];
    writeElements(file, tensor.offset, tensor.dtype, item.flat, 0,
                  item.flat.numel());
  }
  file.sync();
}

void writeState(const std::string &path, const plan::Plan &plan,
                const TrainState &state) {
  ordered_json json = {
      {"format", 2},
      {"run", state.run},
      {"step", state.step},
      {"micro_batches", state.microBatch},
      {"micro_batch_size", plan.job.microBatch},
      {"optimizer_steps", state.optimizerSteps},
      {"scaler",
       {{"scale", state.scaler.scale}, {"good_steps", state.scaler.goodSteps}}},
      {"ranks", plan.ranks()}};
  writeTextDurably(path, json.dump(2) + "\n");
}

/// Removes all but the newest `keep` checkpoints of `run`.
void removeOld(const std::string &dir, const std::string &run, int64_t keep) {
  std::vector<StoredCheckpoint> own;
  for (StoredCheckpoint &checkpoint : checkpointsIn(dir))
    if (checkpoint.run == run)
      own.push_back(std::move(checkpoint));
  for (size_t i = 0; i + keep < own.size(); ++i)
    removeQuietly(own[i].path);
}

} // namespace

void saveCheckpoint(Executor &executor, const std::string &dir, int64_t keep,
                    const TrainState &state,
                    const std::function<void(const std::string &)> &extra) {
  executor.device().synchronize();
  Groups &groups = executor.groups();
  const std::string target =
      (fs::path(dir) / checkpointName(state.step)).string();
  const std::string temporary = target + partial;
  std::string reason;
  // Each stage ends with all ranks knowing whether it went well everywhere.
  auto stage = [&](auto &&work) {
    try {
      work();
    } catch (const std::exception &error) {
      reason = error.what();
    }
    const int failed = groups.firstFailure(reason.empty());
    if (failed < 0)
      return;
    if (groups.rank() == 0)
      removeQuietly(temporary);
    groups.barrier();
    if (failed != groups.rank())
      throw PeerFileError("rank " + std::to_string(failed) + " failed");
    throw AgreedFileError("the checkpoint of step " +
                          std::to_string(state.step) +
                          " cannot be written: " + reason);
  };
  stage([&] {
    if (groups.rank() != 0)
      return;
    removeQuietly(temporary);
    makeFolders(temporary);
  });
  stage([&] {
    char name[40];
    std::snprintf(name, sizeof(name), "rank-%05d.safetensors", groups.rank());
    writeShards(executor, (fs::path(temporary) / name).string());
  });
  if (extra) {
    try {
      extra(temporary); // collective: it fails on all ranks or on none
    } catch (const FileError &) {
      if (groups.rank() == 0)
        removeQuietly(temporary);
      throw;
    }
  }
  stage([&] {
    if (groups.rank() != 0)
      return;
    writeState((fs::path(temporary) / "state.json").string(), executor.plan(),
               state);
    syncFolder(temporary);
    removeQuietly(target);
    renameDurably(temporary, target);
    if (keep > 0)
      removeOld(dir, state.run, keep);
  });
}

} // namespace accel::run
