//===- ShardedRead.cpp - Continuing from checkpoints ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/Agree.h"
#include "runtime/checkpoint/Pieces.h"
#include "runtime/checkpoint/Safetensors.h"
#include "runtime/checkpoint/Sharded.h"
#include "runtime/checkpoint/State.h"
#include "runtime/plan/OptimizerOfStates.h"
#include "runtime/plan/Saturating.h"
#include "runtime/tensors/Tensors.h"

#include <ATen/ops/empty.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

namespace accel::run {

namespace fs = std::filesystem;

namespace {

constexpr int64_t maxElements = int64_t(1) << 45;
constexpr int64_t maxRuns = int64_t(1) << 24;

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

/// The elements [begin, end) of one parameter in one file.
struct StoredPiece {
  size_t file = 0;
  std::string prefix;
  int64_t begin = 0, end = 0, offset = 0;
};

class Checkpoint {
public:
  Checkpoint(const std::string &folder, const TrainState &state,
             const std::vector<ShardFile> &shards);
  /// Fills flat[piece.offset...] with tensor `kind` of the piece's elements;
  /// `state`: one with a layout of its own.
  void read(const plan::Parameter &parameter, const Piece &piece,
            const std::string &kind, const at::Tensor &flat,
            const plan::StateLayout *state = nullptr) const;
  /// The values of a buffer; undefined where the checkpoint has none.
  at::Tensor buffer(const plan::Buffer &buffer) const;
  /// A tensor of `state` of an element of the parameter is there.
  bool hasState(const plan::Parameter &parameter,
                const plan::StateLayout &state) const;
  /// Names of all states.
  std::set<std::string> states() const;

private:
  struct Stored {
    std::vector<int64_t> shape;
    std::vector<StoredPiece> pieces; // by begin; none is empty
  };
  /// Sorts the pieces. Throws FileError where two have the same elements.
  void order(const std::string &fqn, Stored &stored) const;

  std::string folder;
  std::vector<std::unique_ptr<File>> files;
  std::vector<std::map<std::string, StoredTensor>> tensors; // by file
  /// By the state whose layout it is, or "", and FQN.
  std::map<std::pair<std::string, std::string>, Stored> parameters;
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
        const auto state = unit.value("state", std::string());
        for (auto &entry : unit.at("pieces")) {
          StoredPiece piece;
          piece.file = files.size() - 1;
          piece.prefix = unit.at("prefix").get<std::string>();
          piece.begin = entry.at("begin").get<int64_t>();
          piece.end = entry.at("end").get<int64_t>();
          piece.offset = entry.at("offset").get<int64_t>();
          const int64_t runs = entry.value("runs", int64_t(1));
          const int64_t stride = entry.value("stride", int64_t(0));
          auto [place, isNew] = parameters.try_emplace(
              {state, entry.at("fqn").get<std::string>()});
          Stored &stored = place->second;
          const auto shape = entry.at("shape").get<std::vector<int64_t>>();
          if (isNew)
            stored.shape = shape;
          int64_t all = 1;
          for (int64_t size : shape)
            all = plan::saturatingMul(all, std::max<int64_t>(size, 0));
          // Bounds of what a file can have, so that no sum overflows.
          if (piece.begin < 0 || piece.end < piece.begin || piece.end > all ||
              piece.offset < 0 || runs < 1 || runs > maxRuns || stride < 0 ||
              std::max({all, piece.offset, stride}) > maxElements ||
              runs - 1 > (all - piece.end) / std::max<int64_t>(stride, 1) ||
              shape != stored.shape)
            throw FileError(path + ": its layout is not one that was written");
          for (int64_t run = 0; run < runs && piece.begin < piece.end; ++run) {
            stored.pieces.push_back(piece);
            piece.offset += piece.end - piece.begin;
            piece.begin += stride;
            piece.end += stride;
          }
        }
      }
    } catch (const nlohmann::json::exception &error) {
      throw FileError(path + ": its layout cannot be read: " + error.what());
    }
  }
  for (auto &[of, stored] : parameters)
    order(of.second, stored);
}

void Checkpoint::order(const std::string &fqn, Stored &stored) const {
  std::vector<StoredPiece> &pieces = stored.pieces;
  std::sort(pieces.begin(), pieces.end(),
            [](const StoredPiece &a, const StoredPiece &b) {
              return a.begin < b.begin;
            });
  auto same =
      std::adjacent_find(pieces.begin(), pieces.end(),
                         [](const StoredPiece &a, const StoredPiece &b) {
                           return a.end > b.begin;
                         });
  if (same == pieces.end())
    return;
  auto range = [](const StoredPiece &piece) {
    return "[" + std::to_string(piece.begin) + ", " +
           std::to_string(piece.end) + ")";
  };
  const StoredPiece &before = same[0], &piece = same[1];
  throw FileError(
      files[piece.file]->path() + ": its elements " + range(piece) + " of '" +
      fqn + "' overlap " + range(before) + " of " +
      fs::path(files[before.file]->path()).filename().string() +
      ", and a run writes each element once: copy the checkpoint again");
}

void Checkpoint::read(const plan::Parameter &parameter, const Piece &piece,
                      const std::string &kind, const at::Tensor &flat,
                      const plan::StateLayout *state) const {
  auto found = parameters.find({state ? kind : "", parameter.fqn});
  if (found == parameters.end())
    throw FileError(folder + ": has no " + (state ? "'" + kind + "' of " : "") +
                    "parameter '" + parameter.fqn + "'");
  const std::vector<int64_t> shape =
      state ? stateShape(*state, parameter) : parameter.shape;
  if (found->second.shape != shape)
    throw FileError(folder + ": " + (state ? "'" + kind + "' of " : "") +
                    "parameter '" + parameter.fqn + "' has the shape " +
                    shapeText(found->second.shape) + ", and the plan's " +
                    shapeText(shape) +
                    ": continue with the model of the checkpoint");
  const std::vector<StoredPiece> &pieces = found->second.pieces;
  auto first = std::partition_point(
      pieces.begin(), pieces.end(),
      [&](const StoredPiece &stored) { return stored.end <= piece.begin; });
  int64_t read = 0;
  for (auto at = first; at != pieces.end() && at->begin < piece.end; ++at) {
    const StoredPiece &stored = *at;
    const int64_t begin = std::max(piece.begin, stored.begin);
    const int64_t end = std::min(piece.end, stored.end);
    if (begin >= end)
      continue;
    auto tensor = tensors[stored.file].find(stored.prefix + kind);
    const int64_t from = stored.offset + begin - stored.begin;
    if (tensor == tensors[stored.file].end() ||
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

at::Tensor Checkpoint::buffer(const plan::Buffer &buffer) const {
  at::Tensor flat;
  const StoredTensor wanted{buffer.fqn, buffer.dtype, buffer.shape, 0};
  auto make = [&] {
    flat = at::empty({wanted.numel()}, scalarType(buffer.dtype));
  };
  for (size_t i = 0; i < files.size(); ++i) {
    const auto found = tensors[i].find("buffers." + buffer.fqn);
    if (found == tensors[i].end())
      continue;
    const StoredTensor &stored = found->second;
    if (stored.shape != buffer.shape)
      throw FileError(files[i]->path() + ": buffer '" + buffer.fqn +
                      "' has the shape " + shapeText(stored.shape) +
                      ", and the plan's " + shapeText(buffer.shape) +
                      ": continue with the model of the checkpoint");
    make();
    readElements(*files[i], stored.offset, stored.dtype, flat, 0, flat.numel());
    return flat;
  }
  // Other trainers' checkpoints hold buffers among the weights.
  if (parameters.count({"", buffer.fqn}) == 0)
    return flat;
  make();
  plan::Parameter named;
  named.fqn = buffer.fqn;
  named.shape = buffer.shape;
  Piece whole;
  whole.end = flat.numel();
  read(named, whole, "param", flat);
  return flat;
}

bool Checkpoint::hasState(const plan::Parameter &parameter,
                          const plan::StateLayout &state) const {
  if (hasOwnLayout(state))
    return parameters.count({state.rule.name, parameter.fqn}) > 0;
  const auto found = parameters.find({"", parameter.fqn});
  if (found == parameters.end() || found->second.pieces.empty())
    return true; // `read` says that the parameter is not there
  const StoredPiece &piece = found->second.pieces.front();
  return tensors[piece.file].count(piece.prefix + state.rule.name) > 0;
}

std::set<std::string> Checkpoint::states() const {
  std::set<std::string> names;
  for (const auto &byName : tensors)
    for (const auto &[name, tensor] : byName)
      if (const std::string kind = name.substr(name.find('.') + 1);
          kind != "param" && !name.starts_with("buffers."))
        names.insert(kind);
  return names;
}

/// What the plan's optimizer needs and the checkpoint lacks: "'exp_avg' of
/// 'embed.weight'", or "".
std::string missingState(const plan::Plan &plan, const Checkpoint &checkpoint) {
  for (const plan::Unit &unit : plan.units) {
    if (!unit.trainable)
      continue;
    const plan::UpdateShape shape = plan::updateShape(plan, unit);
    for (const plan::StateLayout &layout : plan::stateLayouts(plan, unit))
      for (const plan::StatePart &part : layout.parts) {
        const plan::Parameter &parameter =
            plan.parameters[shape.parameters[part.parameter].index];
        if (!checkpoint.hasState(parameter, layout))
          return "'" + std::string(layout.rule.name) + "' of '" +
                 parameter.fqn + "'";
      }
  }
  return "";
}

/// Throws AgreedError, on all ranks, where another optimizer than the plan's
/// has written the checkpoint: as it says, or else as its states do.
void checkOptimizer(const plan::Plan &plan, const Checkpoint &checkpoint,
                    const TrainState &state, const std::string &folder) {
  const std::string &own = plan.job.optimizer.name;
  const std::set<std::string> states = checkpoint.states();
  std::string other = state.optimizer;
  if (other.empty())
    if (const auto *guess = plan::optimizerOf(states))
      other = guess->name;
  if (other == own)
    return;
  const std::string missing = missingState(plan, checkpoint);
  // States that several optimizers have do not say whose they are.
  if (state.optimizer.empty() && missing.empty() &&
      plan::hasStates(*plan::findOptimizer(own), states))
    return;
  throw AgreedError(
      folder + ": the checkpoint has " +
      (states.empty()  ? "no states of an optimizer"
       : other.empty() ? "states of another optimizer"
                       : "states of " + other) +
      ", the plan's optimizer is " + own +
      (missing.empty() ? "" : ", which needs " + missing) +
      "; plan with the checkpoint's optimizer" +
      (other.empty() ? "" : " (optimizer: {name: " + other + "})") +
      ", or begin a new run from its weights (accel-opt checkpoint merge)");
}

/// Hashes every file once, each on one rank; all throw FileError where one is
/// not what was written.
void verify(Groups &groups, const std::string &folder,
            const std::vector<ShardFile> &files) {
  agree(groups, "", [&] {
    for (size_t i = groups.rank(); i < files.size(); i += groups.size())
      verifyShard(folder, files[i]);
  });
}

} // namespace

TrainState loadCheckpoint(Executor &executor, const std::string &folder,
                          Buffers &buffers) {
  const plan::Plan &plan = executor.plan();
  std::vector<ShardFile> files;
  const TrainState state = readState(folder, plan, files);
  verify(executor.groups(), folder, files);
  Checkpoint checkpoint(folder, state, files);
  checkOptimizer(plan, checkpoint, state, folder);
  const Executor::Holding holding(executor);
  for (size_t u = 0; u < plan.units.size(); ++u) {
    if (!executor.holds(static_cast<int>(u)))
      continue;
    UnitStorage &unit = executor.unit(u);
    executor.hold(static_cast<int>(u), /*changes=*/true);
    for (const Piece &piece : piecesOf(plan, unit, executor.groups().mesh())) {
      const plan::Parameter &p = plan.parameters[piece.parameter];
      checkpoint.read(p, piece, "param", unit.shard());
      for (int i = 0; i < unit.numStates(); ++i)
        if (const plan::StateLayout &state = unit.stateLayouts()[i];
            !hasOwnLayout(state))
          checkpoint.read(p, piece, state.rule.name, unit.state(i));
    }
    for (int i = 0; i < unit.numStates(); ++i)
      if (const plan::StateLayout &state = unit.stateLayouts()[i];
          hasOwnLayout(state))
        for (const Piece &piece :
             piecesOfState(plan, unit, i, executor.groups().mesh()))
          checkpoint.read(plan.parameters[piece.parameter], piece,
                          state.rule.name, unit.state(i), &state);
  }
  std::vector<std::string> missing;
  for (const plan::Buffer &each : plan.buffers)
    if (each.persistent && buffers.has(each.fqn)) {
      if (const at::Tensor values = checkpoint.buffer(each); values.defined())
        buffers.set(each.fqn, values);
      else
        missing.push_back(each.fqn);
    }
  if (!missing.empty() && executor.groups().rank() == 0) {
    const std::string more =
        missing.size() == 1
            ? ""
            : " (and " + std::to_string(missing.size() - 1) + " more)";
    std::fprintf(stderr,
                 "accel-run: note: the checkpoint has no buffer '%s'%s: the "
                 "plan's initial value counts\n",
                 missing[0].c_str(), more.c_str());
  }
  executor.setOptimizerSteps(state.optimizerSteps);
  executor.scaler().set(state.scaler);
  return state;
}

} // namespace accel::run
