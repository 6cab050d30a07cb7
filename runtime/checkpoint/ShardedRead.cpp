//===- ShardedRead.cpp - Continuing from checkpoints ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/Pieces.h"
#include "runtime/checkpoint/Safetensors.h"
#include "runtime/checkpoint/Sharded.h"
#include "runtime/checkpoint/State.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

namespace accel::run {

namespace fs = std::filesystem;

namespace {

/// The elements [begin, end) of one parameter in one file.
struct StoredPiece {
  size_t file = 0;
  std::string prefix;
  std::vector<int64_t> shape;
  int64_t begin = 0, end = 0, offset = 0;
};

class Checkpoint {
public:
  Checkpoint(const std::string &folder, const TrainState &state,
             const std::vector<ShardFile> &shards);
  /// Fills flat[piece.offset...] with tensor `kind` of the piece's elements.
  void read(const plan::Parameter &parameter, const Piece &piece,
            const std::string &kind, const at::Tensor &flat) const;

private:
  std::string folder;
  std::vector<std::unique_ptr<File>> files;
  std::vector<std::map<std::string, StoredTensor>> tensors; // by file
  std::map<std::string, std::vector<StoredPiece>> pieces;   // by FQN
};

Checkpoint::Checkpoint(const std::string &folder, const TrainState &state,
                       const std::vector<ShardFile> &shards)
    : folder(folder) {
  for (const ShardFile &shard : shards) {
    const std::string path = (fs::path(folder) / shard.name).string();
    files.push_back(std::make_unique<File>(path, File::Mode::Read));
    SafetensorsHeader header = readHeader(*files.back());
    if (header.metadata["format"] != "accel-run-1")
      throw FileError(path + ": is not a checkpoint of accel-run");
    if (header.metadata["run"] != state.run ||
        header.metadata["step"] != std::to_string(state.step))
      throw FileError(path + ": is of step " + header.metadata["step"] +
                      " of run " + header.metadata["run"] +
                      ", and state.json of step " + std::to_string(state.step) +
                      " of run " + state.run);
    auto &byName = tensors.emplace_back();
    for (StoredTensor &tensor : header.tensors)
      byName[tensor.name] = tensor;
    try {
      for (auto &unit : nlohmann::json::parse(header.metadata["layout"])) {
        for (auto &entry : unit.at("pieces")) {
          StoredPiece piece;
          piece.file = files.size() - 1;
          piece.prefix = unit.at("prefix").get<std::string>();
          piece.shape = entry.at("shape").get<std::vector<int64_t>>();
          piece.begin = entry.at("begin").get<int64_t>();
          piece.end = entry.at("end").get<int64_t>();
          piece.offset = entry.at("offset").get<int64_t>();
          pieces[entry.at("fqn").get<std::string>()].push_back(piece);
        }
      }
    } catch (const nlohmann::json::exception &error) {
      throw FileError(path + ": its layout cannot be read: " + error.what());
    }
  }
}

void Checkpoint::read(const plan::Parameter &parameter, const Piece &piece,
                      const std::string &kind, const at::Tensor &flat) const {
  auto found = pieces.find(parameter.fqn);
  if (found == pieces.end())
    throw FileError(folder + ": has no parameter '" + parameter.fqn + "'");
  int64_t read = 0;
  for (const StoredPiece &stored : found->second) {
    if (stored.shape != parameter.shape)
      throw FileError(folder + ": parameter '" + parameter.fqn +
                      "' has another shape than the plan's");
    const int64_t begin = std::max(piece.begin, stored.begin);
    const int64_t end = std::min(piece.end, stored.end);
    if (begin >= end)
      continue;
    auto tensor = tensors[stored.file].find(stored.prefix + kind);
    const int64_t from = stored.offset + begin - stored.begin;
    if (tensor == tensors[stored.file].end() || stored.offset < 0 ||
        from + end - begin > tensor->second.numel())
      throw FileError(files[stored.file]->path() + ": has no '" + kind +
                      "' of '" + parameter.fqn + "'");
    readElements(*files[stored.file],
                 tensor->second.offset +
                     from * plan::itemSize(tensor->second.dtype),
                 tensor->second.dtype, flat, piece.offset + begin - piece.begin,
                 end - begin);
    read += end - begin;
  }
  if (read != piece.end - piece.begin)
    throw FileError(folder + ": is incomplete: elements of '" + parameter.fqn +
                    "' are missing (a rank's file?)");
}

/// Hashes every file once, each on one rank; all throw FileError where one is
/// not what was written.
void verify(Groups &groups, const std::string &folder,
            const std::vector<ShardFile> &files) {
  std::string reason;
  try {
    for (size_t i = groups.rank(); i < files.size(); i += groups.size())
      verifyShard(folder, files[i]);
  } catch (const FileError &error) {
    reason = error.what();
  }
  const int failed = groups.firstFailure(reason.empty());
  if (failed == groups.rank())
    throw AgreedFileError(reason);
  if (failed >= 0)
    throw PeerFileError("rank " + std::to_string(failed) + " failed");
}

} // namespace

TrainState loadCheckpoint(Executor &executor, const std::string &folder) {
  const plan::Plan &plan = executor.plan();
  std::vector<ShardFile> files;
  const TrainState state = readState(folder, plan, files);
  verify(executor.groups(), folder, files);
  Checkpoint checkpoint(folder, state, files);
  for (size_t u = 0; u < plan.units.size(); ++u) {
    UnitStorage &unit = executor.unit(u);
    for (const Piece &piece :
         piecesOf(plan, unit.unit(), unit.shardBegin(), unit.shardEnd())) {
      const plan::Parameter &p = plan.parameters[piece.parameter];
      checkpoint.read(p, piece, "param", unit.shard());
      for (int i = 0; i < unit.numStates(); ++i)
        checkpoint.read(p, piece, unit.unit().states[i].name, unit.state(i));
    }
  }
  executor.setOptimizerSteps(state.optimizerSteps);
  executor.scaler().set(state.scaler);
  return state;
}

} // namespace accel::run
