//===- ZeroSaves.cpp - Files of DeepSpeed of one save ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A save under a tag that is there already, as Accelerate's always is, replaces
// file after file: where it breaks off, some are of the step before. Nothing
// but the counts of steps in them tells that.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/PieceReader.h"
#include "frontends/Checkpoint/Zero.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>

namespace accel::checkpoint {

namespace fs = std::filesystem;

namespace {

/// Files of one tag, by the count that each of them has of the same thing, in
/// the order in which counts are met.
using Files = std::vector<std::pair<std::string, std::vector<const Part *>>>;

void add(Files &files, double count, const Part &part) {
  char text[32];
  std::snprintf(text, sizeof text, "%.15g", count);
  for (auto &[known, parts] : files)
    if (known == text) {
      parts.push_back(&part);
      return;
    }
  files.push_back({text, {&part}});
}

class Saves {
public:
  Saves(const Checkpoint &read, const std::string &folder,
        DiagnosticEngine &diagnostics)
      : read(read), folder(folder), diagnostics(diagnostics),
        reader(diagnostics) {}

  bool check() {
    for (const Part &part : read.parts)
      if (part.zero && zeroFolderOf(part) == folder && !take(part))
        return false;
    if (engine.size() > 1)
      return refuse(engine);
    for (const auto &[group, files] : optimizers)
      if (files.size() > 1)
        return refuse(files);
    return true;
  }

private:
  bool take(const Part &part) {
    const ZeroFile &file = *part.zero;
    if (file.kind == ZeroFile::Kind::Module && file.steps)
      add(engine, double(*file.steps), part);
    if (file.kind != ZeroFile::Kind::Optimizer)
      return true;
    for (const auto &[group, steps] : file.counts)
      add(optimizers[group], steps, part);
    for (const Tensor &tensor : part.tensors) {
      if (!isZeroState(tensor) || tensor.path.back() != "step" ||
          !PieceReader::isNumber(tensor))
        continue;
      const auto steps = reader.number(tensor);
      if (!steps)
        return false;
      add(optimizers[tensor.path[tensor.path.size() - 2]], *steps, part);
    }
    return true;
  }

  /// "zero_pp_rank_0_mp_rank_00_optim_states.pt and 2 more after 4 steps"
  static std::string describe(const std::string &steps,
                              const std::vector<const Part *> &parts) {
    return printablePath(fs::path(parts[0]->path).filename().string()) +
           (parts.size() > 1
                ? " and " + std::to_string(parts.size() - 1) + " more"
                : "") +
           " after " + steps + (steps == "1" ? " step" : " steps");
  }

  bool refuse(const Files &files) {
    // A count that is damaged is no other save's.
    if (!reader.verify())
      return false;
    constexpr size_t most = 4;
    std::string text;
    for (size_t i = 0; i < std::min(files.size(), most); ++i)
      text += (i == 0 ? "" : ", ") + describe(files[i].first, files[i].second);
    diagnostics.error(
        "invalid-checkpoint",
        (folder == "." ? fs::path(read.folder) : fs::path(read.folder) / folder)
            .string(),
        "its files are of " + std::to_string(files.size()) + " saves: " + text +
            (files.size() > most ? ", and others" : ""),
        "take an earlier checkpoint: a save that breaks off leaves files of "
        "the one before");
    return false;
  }

  const Checkpoint &read;
  const std::string &folder;
  DiagnosticEngine &diagnostics;
  PieceReader reader;
  Files engine;                            // global_steps
  std::map<std::string, Files> optimizers; // steps, by number of the group
};

} // namespace

std::string zeroFolderOf(const Part &part) {
  const std::string folder = fs::path(part.path).parent_path().string();
  return folder.empty() ? "." : folder;
}

bool isZeroState(const Tensor &tensor) {
  return tensor.path.size() == 5 && tensor.path[0] == zeroOptimizerKey &&
         tensor.path[2] == "state";
}

bool checkZeroSave(const Checkpoint &read, const std::string &folder,
                   DiagnosticEngine &diagnostics) {
  return Saves(read, folder, diagnostics).check();
}

bool checkZeroSaves(const Checkpoint &read, DiagnosticEngine &diagnostics) {
  std::set<std::string> folders;
  for (const Part &part : read.parts)
    if (part.zero)
      folders.insert(zeroFolderOf(part));
  bool good = true;
  for (const std::string &folder : folders)
    good &= checkZeroSave(read, folder, diagnostics);
  return good;
}

} // namespace accel::checkpoint
