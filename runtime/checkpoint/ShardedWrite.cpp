//===- ShardedWrite.cpp - Writing checkpoints -----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/Agree.h"
#include "runtime/checkpoint/Pieces.h"
#include "runtime/checkpoint/RunFolder.h"
#include "runtime/checkpoint/Safetensors.h"
#include "runtime/checkpoint/ShardImage.h"
#include "runtime/checkpoint/Sharded.h"
#include "runtime/checkpoint/State.h"
#include "runtime/plan/Sha256.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>

namespace accel::run {

using nlohmann::ordered_json;
namespace fs = std::filesystem;

namespace {

/// Where this rank's file has which elements of a unit. Of a parameter that is
/// split over an axis a rank has many runs of one length, equally far apart:
/// one entry says all of them.
/// `state`: of that state's elements.
ordered_json layoutOf(const plan::Plan &plan, const std::vector<Piece> &held,
                      const Groups &groups,
                      const plan::StateLayout *state = nullptr) {
  struct Entry {
    Piece first;
    int64_t runs = 1, stride = 0;
  };
  std::vector<Entry> entries;
  for (const Piece &piece : held) {
    if (!writesParameter(plan, plan.parameters[piece.parameter], groups.mesh()))
      continue;
    if (!entries.empty()) {
      Entry &last = entries.back();
      const int64_t length = last.first.end - last.first.begin;
      const int64_t stride =
          piece.begin - last.first.begin - (last.runs - 1) * last.stride;
      if (last.first.parameter == piece.parameter &&
          piece.end - piece.begin == length &&
          piece.offset == last.first.offset + last.runs * length &&
          stride > 0 && (last.runs == 1 || stride == last.stride)) {
        last.stride = stride;
        ++last.runs;
        continue;
      }
    }
    entries.push_back({piece});
  }
  ordered_json pieces = ordered_json::array();
  for (const Entry &entry : entries) {
    const plan::Parameter &p = plan.parameters[entry.first.parameter];
    ordered_json json = {{"fqn", p.fqn},
                         {"shape", state ? stateShape(*state, p) : p.shape},
                         {"begin", entry.first.begin},
                         {"end", entry.first.end},
                         {"offset", entry.first.offset}};
    if (entry.runs > 1) {
      json["runs"] = entry.runs;
      json["stride"] = entry.stride;
    }
    pieces.push_back(std::move(json));
  }
  return pieces;
}

/// What each rank has written, on all ranks.
std::vector<ShardFile> gatherFiles(Groups &groups, const ShardFile &own) {
  // Four hexadecimal digits are exact in a double.
  constexpr size_t words = 16, fields = 1 + words;
  std::vector<double> values(fields, -1);
  if (!own.name.empty()) {
    values[0] = static_cast<double>(own.bytes);
    for (size_t i = 0; i < words; ++i)
      values[1 + i] = std::stoi(own.sha256.substr(4 * i, 4), nullptr, 16);
  }
  const std::vector<double> all = groups.gather(values);
  std::vector<ShardFile> files;
  for (size_t rank = 0; rank * fields < all.size(); ++rank) {
    const double *at = &all[rank * fields];
    if (at[0] < 0)
      continue;
    ShardFile file;
    char text[40];
    std::snprintf(text, sizeof(text), "rank-%05zu.safetensors", rank);
    file.name = text;
    file.bytes = static_cast<int64_t>(at[0]);
    for (size_t i = 0; i < words; ++i) {
      std::snprintf(text, sizeof(text), "%04x", static_cast<int>(at[1 + i]));
      file.sha256 += text;
    }
    files.push_back(std::move(file));
  }
  return files;
}

/// Removes all but the newest `keep` checkpoints of `run`; one that others have
/// added files to stays.
void removeOld(const std::string &dir, const std::string &run, int64_t keep) {
  std::vector<StoredCheckpoint> own;
  for (StoredCheckpoint &checkpoint : checkpointsIn(dir))
    if (checkpoint.run == run && !checkpoint.damaged)
      own.push_back(std::move(checkpoint));
  static std::set<std::string> named;
  for (size_t i = 0; i + keep < own.size(); ++i) {
    const std::string others = removeIfOwn(own[i].path, Made::Checkpoint);
    if (!others.empty() && named.insert(own[i].path).second)
      std::fprintf(stderr,
                   "accel-run: warning: %s %s: the checkpoint is not removed\n",
                   own[i].path.c_str(), others.c_str());
  }
}

} // namespace

ShardImage::ShardImage(Executor &executor, const TrainState &state,
                       const Buffers &buffers) {
  char text[40];
  std::snprintf(text, sizeof(text), "rank-%05d.safetensors",
                executor.groups().rank());
  const plan::Plan &plan = executor.plan();
  ordered_json layout = ordered_json::array();
  for (size_t u = 0; u < plan.units.size(); ++u) {
    if (!executor.holds(static_cast<int>(u)))
      continue;
    UnitStorage &unit = executor.unit(u);
    if (!writesUnit(plan, unit.unit(), executor.groups().mesh()))
      continue;
    const int64_t numel = unit.shard().numel();
    Groups &groups = executor.groups();
    const std::string prefix = std::to_string(u) + ".";
    flats.push_back(unit.shard());
    units.push_back(static_cast<int>(u));
    header.tensors.push_back(
        {prefix + "param", unit.unit().storage, {numel}, 0});
    layout.push_back(
        {{"prefix", prefix},
         {"pieces",
          layoutOf(plan, piecesOf(plan, unit, groups.mesh()), groups)}});
    for (int i = 0; i < unit.numStates(); ++i) {
      const plan::StateLayout &state = unit.stateLayouts()[i];
      const std::string name = state.rule.name;
      std::string of = prefix;
      if (hasOwnLayout(state)) {
        // Sums are the same on all ranks of the unit.
        if (state.rule.shape != plan::StateShape::Whole &&
            groups.mesh().position(unit.unit().shardAxes) != 0)
          continue;
        of = std::to_string(u) + "-" + name + ".";
        layout.push_back(
            {{"prefix", of},
             {"state", name},
             {"pieces",
              layoutOf(plan, piecesOfState(plan, unit, i, groups.mesh()),
                       groups, &state)}});
      }
      flats.push_back(unit.state(i));
      units.push_back(static_cast<int>(u));
      header.tensors.push_back({of + name, state.dtype, {state.elements}, 0});
    }
  }
  if (executor.groups().rank() == 0)
    for (const plan::Buffer &buffer : plan.buffers)
      if (buffer.persistent && buffers.has(buffer.fqn)) {
        header.tensors.push_back(
            {"buffers." + buffer.fqn, buffer.dtype, buffer.shape, 0});
        constants.push_back(&buffers.bytes(buffer.fqn));
      }
  if (header.tensors.empty())
    return;
  name = text;
  header.metadata["format"] = "accel-run-1";
  header.metadata["run"] = state.run;
  header.metadata["step"] = std::to_string(state.step);
  header.metadata["layout"] = layout.dump();
  head = layOut(header);
}

ShardFile ShardImage::write(const std::string &folder, const Put &put) const {
  if (name.empty())
    return {};
  plan::Sha256 digest;
  File file((fs::path(folder) / name).string(), File::Mode::Create);
  file.digestInto(digest);
  file.reserve(header.fileBytes);
  file.writeAt(0, head.data(), head.size());
  for (size_t i = 0; i < flats.size(); ++i)
    put(file, i);
  for (size_t i = 0; i < constants.size(); ++i)
    file.writeAt(header.tensors[flats.size() + i].offset, constants[i]->data(),
                 constants[i]->size());
  file.sync();
  return {name, header.fileBytes, digest.hexDigest()};
}

CheckpointFolder::CheckpointFolder(Executor &executor, const std::string &dir,
                                   const TrainState &state)
    : executor(executor), dir(dir), state(state),
      target((fs::path(dir) / checkpointName(state.step)).string()),
      temporary(target + plan::partialSuffix) {}

void CheckpointFolder::stage(const std::function<void()> &work) {
  Groups &groups = executor.groups();
  agree(groups,
        "the checkpoint of step " + std::to_string(state.step) +
            " cannot be written",
        work, [&] {
          if (groups.rank() == 0)
            removeUnfinished(temporary, Made::Checkpoint);
        });
}

void CheckpointFolder::make() {
  stage([&] {
    if (executor.groups().rank() != 0)
      return;
    tidy(dir);
    if (const std::string name = foreignFolder(dir); !name.empty())
      throw FileError(name + ": is not a checkpoint of accel-run, and a "
                             "checkpoint could replace it");
    removeOwn(temporary, Made::Checkpoint);
    makeFolders(temporary);
  });
}

std::vector<ShardFile> CheckpointFolder::gather(const ShardFile &own) {
  return gatherFiles(executor.groups(), own);
}

void CheckpointFolder::publish(const std::vector<ShardFile> &files,
                               int64_t keep) {
  writeState(temporary, executor.plan(), state, files);
  syncFolder(temporary);
  replaceOwn(temporary, target, Made::Checkpoint);
  if (keep > 0)
    removeOld(dir, state.run, keep);
}

void CheckpointFolder::complete(
    const ShardFile &own, int64_t keep,
    const std::function<void(const std::string &)> &extra) {
  Groups &groups = executor.groups();
  const std::vector<ShardFile> files = gather(own);
  if (extra) {
    try {
      extra(temporary); // collective: it fails on all ranks or on none
    } catch (const FileError &) {
      if (groups.rank() == 0)
        removeUnfinished(temporary, Made::Checkpoint);
      throw;
    }
  }
  stage([&] {
    if (groups.rank() == 0)
      publish(files, keep);
  });
}

void saveCheckpoint(Executor &executor, const std::string &dir, int64_t keep,
                    const TrainState &state, const Buffers &buffers,
                    const std::function<void(const std::string &)> &extra) {
  executor.device().synchronize();
  CheckpointFolder folder(executor, dir, state);
  folder.make();
  ShardFile own;
  folder.stage([&] {
    const ShardImage image(executor, state, buffers);
    const Executor::Holding holding(executor);
    own = image.write(folder.path(), [&](File &file, size_t i) {
      const StoredTensor &tensor = image.header.tensors[i];
      executor.hold(image.units[i], /*changes=*/false);
      writeElements(file, tensor.offset, tensor.dtype, image.flats[i], 0,
                    image.flats[i].numel());
    });
  });
  folder.complete(own, keep, extra);
}

} // namespace accel::run
