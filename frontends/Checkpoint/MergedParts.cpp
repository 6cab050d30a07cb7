//===- MergedParts.cpp - Which weights go into which part -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/ConvertedFloats.h"
#include "frontends/Checkpoint/Merge.h"
#include "frontends/Checkpoint/RunShards.h"
#include "frontends/Checkpoint/StateKeys.h"
#include "frontends/Checkpoint/WeightFiles.h"
#include "frontends/Checkpoint/WeightKeys.h"
#include "frontends/Checkpoint/Zero.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

namespace accel::checkpoint {

namespace {

class Planner {
public:
  Planner(const Checkpoint &read, const MergeOptions &options,
          DiagnosticEngine &diagnostics)
      : read(read), options(options), diagnostics(diagnostics) {}

  std::optional<Merged> run() {
    const bool good =
        read.format == FolderFormat::AccelRun ? takeRunShards() : takeParts();
    if (!good)
      return std::nullopt;
    if (weights.empty()) {
      diagnostics.error("no-weights", read.folder,
                        "the checkpoint holds no weights of a model",
                        "accel-opt checkpoint inspect says what it holds");
      return std::nullopt;
    }
    split();
    return std::move(merged);
  }

private:
  bool refuse(const std::string &message, const std::string &hint) {
    diagnostics.error("not-supported", read.folder, message, hint);
    return false;
  }

  /// The folder that a part is or lies in; empty: that of the checkpoint.
  std::filesystem::path folderOf(const std::string &part) const {
    const std::filesystem::path path(part);
    std::error_code failed;
    return std::filesystem::is_directory(
               std::filesystem::path(read.folder) / path, failed)
               ? path
               : path.parent_path();
  }

  std::string inFolder(const std::filesystem::path &path) const {
    return printablePath((std::filesystem::path(read.folder) / path).string());
  }

  bool takeParts() {
    bool zero = false;
    const Part *newest = nullptr; // parts stand in the order of their paths
    for (const Part &part : read.parts)
      if (part.runShard && !part.unfinished)
        newest = &part;
    if (newest)
      return refuse(
          "holds shards of accel-run in a folder of it",
          "name that folder: " +
              inFolder(std::filesystem::path(newest->path).parent_path()));
    for (const Part &part : read.parts) {
      zero |= part.zero != nullptr;
      if (!part.zero && !take(part))
        return false;
    }
    return !zero || takeZero();
  }

  bool takeRunShards() {
    auto shards = readRunShards(read, diagnostics);
    if (!shards)
      return false;
    for (auto &[kind, part] : shards->kinds)
      if (kind != "param")
        merged.leftOut += int64_t(part.tensors.size());
    auto found = shards->kinds.find("param");
    if (found != shards->kinds.end())
      for (const Tensor &tensor : found->second.tensors)
        if (tensor.name.starts_with("base_model.model."))
          return refuse("its run trains an adapter, which PEFT names in "
                        "another way",
                        "accel-run writes adapter_model.safetensors to the "
                        "folder 'model' beside its checkpoints");
    return found == shards->kinds.end() ||
           (takeMade(std::move(found->second)) &&
            takeMade(std::move(shards->buffers)));
  }

  static bool holdsWeights(const Part &part, const WeightKeys &places,
                           const std::string &file) {
    return std::any_of(
        part.tensors.begin(), part.tensors.end(), [&](const Tensor &tensor) {
          return places.roleOf(tensor) == Role::Weight &&
                 std::any_of(
                     tensor.pieces.begin(), tensor.pieces.end(),
                     [&](const Piece &piece) { return piece.file == file; });
        });
  }

  bool take(const Part &part) {
    if (!part.unread.empty()) {
      merged.unread[part.unread].push_back(part.path);
      return true;
    }
    std::optional<WeightKeys> places;
    if (isWeights(part))
      places.emplace(part);
    for (const Damage &damage : part.damage)
      merged
          .unread[places && holdsWeights(part, *places, damage.file)
                      ? "damaged behind the weights, which are read"
                      : "damaged, and holds none of the weights"]
          .push_back(std::filesystem::path(damage.file)
                         .lexically_relative(read.folder)
                         .string());
    if (!places) {
      merged.leftOut += int64_t(part.tensors.size());
      return true;
    }
    const std::string file =
        std::filesystem::path(part.path).filename().string();
    if (file.starts_with("adapter_model."))
      return refuse(printablePath(part.path) +
                        " holds an adapter, without the model's weights",
                    "PeftModel.from_pretrained loads it as it is; convert "
                    "takes model.safetensors with PeftModel.state_dict() in "
                    "its place");
    const std::vector<std::string> &keys = places->around();
    std::string prefix; // of names, which count the items of lists too
    for (const std::string &key : keys)
      prefix += key + ".";
    for (const Tensor &tensor : part.tensors) {
      const Role role = places->roleOf(tensor);
      if (role != Role::Weight) {
        ++merged.leftOut;
        if (tensor.unsure)
          merged.leftStates.push_back(tensor.name);
        if (role == Role::Beside)
          ++merged.leftBeside[keyBeside(tensor, keys)];
        continue;
      }
      const bool named = tensor.name.starts_with(prefix);
      if (!check(part, tensor,
                 named ? tensor.name.substr(prefix.size())
                       : tensor.path.back()))
        return false;
    }
    for (const Tensor &value : part.values)
      if (!value.optimizer && !isOfGroups(value.path))
        merged.leftValues.push_back(value.name);
    return true;
  }

  /// Where a tensor's keys leave those of the weights: "app.ema".
  static std::string keyBeside(const Tensor &tensor,
                               const std::vector<std::string> &keys) {
    std::string text;
    for (size_t i = 0; i < tensor.path.size(); ++i) {
      text += (i == 0 ? "" : ".") + tensor.path[i];
      if (i >= keys.size() || tensor.path[i] != keys[i])
        return text;
    }
    return tensor.name;
  }

  bool takeZero() {
    auto made = assembleZero(read, merged.leftOut, diagnostics);
    return made && takeMade(std::move(*made));
  }

  /// Tensors that are weights, all of them.
  bool takeMade(Part part) {
    merged.made.push_back(std::move(part));
    for (const Tensor &tensor : merged.made.back().tensors)
      if (!check(merged.made.back(), tensor, tensor.name))
        return false;
    return true;
  }

  bool check(const Part &part, const Tensor &tensor, const std::string &name) {
    const std::string what = "'" + printable(name) + "' ";
    if (name.empty())
      return refuse(printablePath(part.path) +
                        " holds one tensor, which has no name",
                    "save a dictionary of tensors");
    if (name == "__metadata__")
      return refuse(what + "is a tensor's name in " + printablePath(part.path) +
                        ", which safetensors keeps for itself",
                    "rename it in torch");
    if (storedDtypeOf(tensor.dtype).empty())
      return refuse(what + "is " + whyNotStored(tensor.dtype),
                    "convert it in torch");
    for (const Piece &piece : tensor.pieces) {
      if (piece.transformed)
        return refuse("the shards of " + what +
                          "are compressed or otherwise transformed",
                      "save without stream transforms");
      if (!piece.contiguous)
        return refuse(what + "is stored with strides, not row by row",
                      "save tensor.contiguous()");
    }
    auto [at, isNew] = weights.try_emplace(name, &tensor);
    if (isNew) {
      from[name] = part.path;
      return true;
    }
    if (from[name] == part.path)
      return refuse("two tensors of " + printablePath(part.path) +
                        " have the name '" + printable(name) + "'",
                    "rename one of them in torch");
    const auto folder = folderOf(part.path);
    return refuse(what + "is in " + printablePath(from[name]) + " and in " +
                      printablePath(part.path),
                  folder.empty() || folder == folderOf(from[name])
                      ? "give the files of each model a folder of their own"
                      : "merge the folder of one model: " + inFolder(folder));
  }

  void split() {
    for (const auto &[name, tensor] : weights) {
      const bool converted =
          !options.dtype.empty() && isConvertedFloat(tensor->dtype);
      const std::string &dtype = converted ? options.dtype : tensor->dtype;
      const int64_t bytes =
          tensor->bytes / elementBytes(tensor->dtype) * elementBytes(dtype);
      if (merged.parts.empty() ||
          (merged.parts.back().bytes > 0 &&
           bytes > options.partBytes - merged.parts.back().bytes))
        merged.parts.emplace_back();
      MergedPart &part = merged.parts.back();
      part.tensors.push_back({name, tensor, dtype, bytes, part.bytes});
      part.bytes += bytes;
      merged.bytes += bytes;
      ++merged.tensors;
    }
    const size_t n = merged.parts.size();
    auto five = [](size_t number) {
      const std::string text = std::to_string(number);
      return std::string(text.size() < 5 ? 5 - text.size() : 0, '0') + text;
    };
    for (size_t i = 0; i < n; ++i)
      merged.parts[i].name =
          n == 1 ? "model.safetensors"
                 : "model-" + five(i + 1) + "-of-" + five(n) + ".safetensors";
  }

  const Checkpoint &read;
  const MergeOptions &options;
  DiagnosticEngine &diagnostics;
  std::map<std::string, const Tensor *> weights;
  std::map<std::string, std::string> from; // the part of a weight
  Merged merged;
};

} // namespace

std::optional<Merged> planMerge(const Checkpoint &read,
                                const MergeOptions &options,
                                DiagnosticEngine &diagnostics) {
  return Planner(read, options, diagnostics).run();
}

} // namespace accel::checkpoint
