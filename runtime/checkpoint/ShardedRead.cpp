//===- ShardedRead.cpp - Continuing from checkpoints ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/Pieces.h"
#include "runtime/checkpoint/Safetensors.h"
#include "runtime/checkpoint/Sharded.h"

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
  explicit Checkpoint(const std::string &folder);
  /// Fills flat[piece.offset...] with tensor `kind` of the piece's elements.
  void read(const plan::Parameter &parameter, const Piece &piece,
            const std::string &kind, const at::Tensor &flat) const;

private:
  std::string folder;
  std::vector<std::unique_ptr<File>> files;
  std::vector<std::map<std::string, StoredTensor>> tensors; // by file
  std::map<std::string, std::vector<StoredPiece>> pieces;   // by FQN
};

Checkpoint::Checkpoint(const std::string &folder) : folder(folder) {
  std::vector<std::string> paths;
  std::error_code code;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder, code))
    if (entry.path().extension() == ".safetensors" &&
        entry.path().filename().string().rfind("rank-", 0) == 0)
      paths.push_back(entry.path().string());
  if (code)
    throw FileError(folder + ": " + code.message());
  std::sort(paths.begin(), paths.end());
  for (const std::string &path : paths) {
    files.push_back(std::make_unique<File>(path, File::Mode::Read));
    SafetensorsHeader header = readHeader(*files.back());
    if (header.metadata["format"] != "accel-run-1")
      throw FileError(path + ": is not a checkpoint of accel-run");
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

} // namespace

TrainState loadCheckpoint(Executor &executor, const std::string &folder) {
  const plan::Plan &plan = executor.plan();
  TrainState state;
  const std::string path = (fs::path(folder) / "state.json").string();
  {
    File file(path, File::Mode::Read);
    std::string text(file.size(), '\0');
    file.readAt(0, text.data(), text.size());
    try {
      auto json = nlohmann::json::parse(text);
      if (json.at("format").get<int>() != 2)
        throw FileError(path + ": is of another format than 2, which this "
                               "accel-run reads");
      state.run = json.at("run").get<std::string>();
      state.step = json.at("step").get<int64_t>();
      const int64_t samples = json.at("micro_batches").get<int64_t>() *
                              json.at("micro_batch_size").get<int64_t>();
      if (samples % plan.job.microBatch != 0)
        throw FileError(path + ": " + std::to_string(samples) +
                        " samples are done, which micro-batches of " +
                        std::to_string(plan.job.microBatch) +
                        " cannot continue");
      state.microBatch = samples / plan.job.microBatch;
      state.optimizerSteps = json.at("optimizer_steps").get<double>();
      state.scaler.scale = json.at("scaler").at("scale").get<double>();
      state.scaler.goodSteps =
          json.at("scaler").at("good_steps").get<int64_t>();
    } catch (const nlohmann::json::exception &error) {
      throw FileError(path + ": cannot be read: " + error.what());
    }
  }
  Checkpoint checkpoint(folder);
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
