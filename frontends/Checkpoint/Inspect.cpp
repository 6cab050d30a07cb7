//===- Inspect.cpp - What a checkpoint folder is --------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/RunShards.h"
#include "frontends/Checkpoint/StateKeys.h"
#include "frontends/Checkpoint/WeightFiles.h"
#include "frontends/Checkpoint/WeightKeys.h"
#include "frontends/Checkpoint/Zero.h"
#include "frontends/HuggingFace/Safetensors.h"
#include "frontends/Yaml/Yaml.h"
#include "runtime/plan/JsonParse.h"
#include "runtime/plan/OutputModel.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

namespace accel::checkpoint {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t maxStateBytes = uint64_t(256) << 20;

/// What a file is by its name, where that is all that is read of it.
struct KnownName {
  std::string_view begin, end, meaning;
  Beside beside = Beside::Nothing;
};
constexpr KnownName knownNames[] = {
    {"random_states_", ".pkl", "random states of a rank (Accelerate)",
     Beside::RandomStates},
    {"rng_state", ".pth", "random states of a rank (Trainer)",
     Beside::RandomStates},
    {"scheduler", ".bin", "learning-rate schedule (Accelerate)",
     Beside::Schedule},
    {"scheduler", ".pt", "learning-rate schedule (Trainer)", Beside::Schedule},
    {"sampler", ".bin", "position of a sampler (Accelerate)", Beside::Sampler},
    {"dl_state_dict", ".bin", "position of a data loader (Accelerate)",
     Beside::Sampler},
    {"custom_checkpoint_", ".pkl", "an object of the script (Accelerate)",
     Beside::Script},
    {"scaler", ".pt", "loss scaler", Beside::Scaler},
    {"mp_rank_", "_model_states.pt", "weights of a DeepSpeed rank"},
    {"zero_pp_rank_", "_model_states.pt", "weights of a ZeRO 3 rank"},
    {"zero_pp_rank_", "_optim_states.pt", "optimizer states of a ZeRO rank"},
    {"bf16_zero_pp_rank_", "_optim_states.pt",
     "optimizer states of a ZeRO rank"},
    {"latest", "", "DeepSpeed's newest tag", Beside::Tag}};

/// Null for a name that says nothing.
const KnownName *knownName(std::string_view name) {
  for (const KnownName &known : knownNames)
    if (name.starts_with(known.begin) && name.ends_with(known.end) &&
        (!known.end.empty() || name == known.begin))
      return &known;
  return nullptr;
}

/// Token files end in .bin too; torch's begin like a zip, or a pickle's
/// protocol before torch 1.6.
bool isTorchSave(const fs::path &path) {
  std::ifstream file(path, std::ios::binary);
  const int first = file.get(), second = file.get();
  return (first == 'P' && second == 'K') || (first == 0x80 && second == 2);
}

class Inspector {
public:
  Inspector(const std::string &folder, Wanted wanted,
            DiagnosticEngine &diagnostics)
      : root(folder), wanted(wanted), diagnostics(diagnostics) {}

  std::optional<Checkpoint> run() {
    std::error_code failed;
    if (!fs::is_directory(root, failed)) {
      diagnostics.error("file-not-found", root.string(),
                        "no folder; a checkpoint is a folder");
      return std::nullopt;
    }
    result.folder = root.string();
    if (!look(root, 0) || !checkUnfinished())
      return std::nullopt;
    for (const Part &part : result.parts)
      if (part.zero && part.zero->steps && part.unread.empty())
        result.step = part.zero->steps;
    if (!readStates())
      return std::nullopt;
    std::sort(result.parts.begin(), result.parts.end(),
              [](const Part &a, const Part &b) { return a.path < b.path; });
    for (const Part &part : result.parts)
      if (!part.apart.empty())
        apart.insert(part.apart);
    preferTrainingState(result.parts);
    if (wanted != Wanted::Everything)
      foldApart(result.parts);
    leaveOthersOfRun();
    if (!recognise()) {
      diagnostics.error(
          "unknown-checkpoint", root.string(),
          "holds nothing that accel-opt knows as a checkpoint",
          "expected a .metadata (torch DCP), *.safetensors, *.bin of "
          "torch.save, a state.json of accel-run, or a folder of "
          "Accelerator.save_state or DeepSpeed");
      return std::nullopt;
    }
    return std::move(result);
  }

private:
  std::string inside(const fs::path &path) const {
    const std::string name = path.lexically_relative(root).string();
    return name.empty() ? "." : name;
  }

  /// `take` reads into the part. What is wrong there counts once it is known
  /// what is read: files beside that may be damaged.
  template <typename Take> void read(Part &part, const Take &take) {
    DiagnosticEngine found;
    if (take(found)) {
      for (const Diagnostic &each : found.all())
        diagnostics.report(each);
      return;
    }
    part.tensors.clear();
    part.zero.reset();
    for (const Diagnostic &each : found.all())
      part.damage.push_back({each.file, 0, each});
  }

  bool isIn(const Part &part, const fs::path &folder) const {
    const std::string own = fs::path(part.path).parent_path().string();
    return (own.empty() ? "." : own) == inside(folder);
  }

  /// Folders stand at most two deep: a save_state's, then a DeepSpeed tag's.
  bool look(const fs::path &folder, int depth) {
    std::error_code failed;
    std::set<fs::path> paths; // in the order of names
    for (fs::directory_iterator it(folder, failed), end; !failed && it != end;
         it.increment(failed))
      paths.insert(it->path());
    if (failed) {
      diagnostics.error("invalid-checkpoint", folder.string(),
                        failed.message());
      return false;
    }
    const bool dcp = fs::is_regular_file(folder / ".metadata", failed);
    const auto shards =
        std::count_if(paths.begin(), paths.end(), [](const fs::path &path) {
          return path.extension() == ".distcp";
        });
    bool good = true;
    if (shards && !dcp)
      // torch writes .metadata last.
      good = fail(folder,
                  "holds " + std::to_string(shards) + " .distcp file" +
                      (shards == 1 ? "" : "s") +
                      " and no .metadata: the save did not finish",
                  "take an earlier checkpoint; where each node saves to its "
                  "own disk, .metadata is on that of rank 0");
    if (dcp) {
      Part part;
      part.path = inside(folder);
      part.format = PartFormat::TorchDcp;
      part.meaning = "sharded by torch.distributed.checkpoint";
      read(part, [&](DiagnosticEngine &found) {
        return readDcp(folder.string(), part, found);
      });
      result.parts.push_back(std::move(part));
    }
    for (const fs::path &path : paths)
      if (fs::is_directory(path, failed))
        good &= depth >= 2 || look(path, depth + 1);
      else if (fs::is_regular_file(path, failed))
        take(path);
    return good && chooseWeights(root, folder, result.parts, diagnostics) &&
           checkState(folder);
  }

  bool fail(const fs::path &path, const std::string &message,
            const std::string &hint) {
    diagnostics.error("invalid-checkpoint", path.string(), message, hint);
    return false;
  }

  /// accel-run renames a folder with shards once its state.json is written.
  bool checkState(const fs::path &folder) {
    std::error_code failed;
    if (fs::is_regular_file(folder / "state.json", failed))
      return true;
    for (Part &part : result.parts)
      if (part.runShard && isIn(part, folder)) {
        part.unfinished = true;
        part.meaning = "shard of accel-run without state.json: not complete";
        unfinished.insert(folder);
      }
    return true;
  }

  /// Other checkpoints of the run may be whole.
  bool checkUnfinished() {
    if (std::any_of(
            result.parts.begin(), result.parts.end(),
            [](const Part &part) { return part.runShard && !part.unfinished; }))
      return true;
    for (const fs::path &folder : unfinished)
      fail(folder,
           "rank-*.safetensors without state.json: not a complete "
           "checkpoint",
           "take another step of the run");
    return unfinished.empty();
  }

  void take(const fs::path &path) {
    const std::string name = path.filename().string();
    std::error_code failed;
    Part part;
    part.path = inside(path);
    const uintmax_t size = fs::file_size(path, failed);
    part.bytes = failed ? 0 : int64_t(size);
    names.insert(part.path);
    if (const KnownName *known = knownName(name)) {
      part.meaning = known->meaning;
      part.beside = known->beside;
    }
    if (isZeroName(name)) {
      if (part.meaning.empty())
        part.meaning = "states of a layer or an expert (DeepSpeed)";
      read(part, [&](DiagnosticEngine &found) {
        return readZero(path.string(), part, found);
      });
    } else if (!part.meaning.empty()) {
      part.format = PartFormat::ByName;
    } else if (name.ends_with(".safetensors")) {
      part.format = PartFormat::Safetensors;
      part.meaning = "safetensors";
      read(part, [&](DiagnosticEngine &found) {
        return takeSafetensors(path, part, found);
      });
    } else if (((name.ends_with(".bin") && name != "training_args.bin") ||
                name == "optimizer.pt") &&
               isTorchSave(path)) {
      part.format = PartFormat::TorchSave;
      part.meaning = "torch.save";
      read(part, [&](DiagnosticEngine &found) {
        return readTorchSave(path.string(), part, found);
      });
    } else {
      return;
    }
    result.parts.push_back(std::move(part));
  }

  static bool takeSafetensors(const fs::path &path, Part &part,
                              DiagnosticEngine &diagnostics) {
    auto file = huggingface::readSafetensorsHeader(path.string(), diagnostics);
    if (!file)
      return false;
    const auto format = file->metadata.find("format");
    part.runShard =
        format != file->metadata.end() && format->second == runShardFormat;
    for (const huggingface::StoredTensor &stored : file->tensors) {
      Tensor tensor;
      tensor.name = stored.name;
      tensor.dtype = stored.dtype;
      if (auto known = torchDtypeOf(stored.dtype); !known.empty())
        tensor.dtype = known;
      tensor.shape = stored.shape;
      tensor.bytes = int64_t(stored.end - stored.begin);
      tensor.path = {stored.name};
      Piece piece;
      piece.file = path.string();
      piece.begin = int64_t(stored.begin);
      piece.length = tensor.bytes;
      piece.offsets.assign(stored.shape.size(), 0);
      piece.sizes = stored.shape;
      tensor.pieces.push_back(std::move(piece));
      part.tensors.push_back(std::move(tensor));
    }
    return true;
  }

  bool readJson(const char *name, nlohmann::json &json) {
    const std::string path = (root / name).string();
    std::string text, error;
    if (!yaml::readWholeFile(path, maxStateBytes, text, error)) {
      diagnostics.error("invalid-checkpoint", path, error);
      return false;
    }
    try {
      json = plan::parseJson(text);
    } catch (const plan::JsonSyntaxError &problem) {
      diagnostics.error("invalid-checkpoint", path,
                        "is not valid JSON: " + problem.message);
      return false;
    }
    return true;
  }

  bool exists(const char *name) const {
    std::error_code failed;
    return fs::is_regular_file(root / name, failed);
  }

  bool hasRunShards() const {
    return std::any_of(
        result.parts.begin(), result.parts.end(),
        [&](const Part &part) { return part.runShard && isIn(part, root); });
  }

  /// state.json is accel-run's, trainer_state.json transformers'.
  bool readStates() {
    for (auto [name, key] : {std::pair{"state.json", "step"},
                             {"trainer_state.json", "global_step"}}) {
      const bool own = name == std::string_view("state.json");
      if (!exists(name) || (!own && wanted == Wanted::Weights))
        continue;
      nlohmann::json json;
      if (!readJson(name, json))
        return false;
      if (auto step = json.find(key);
          step != json.end() && step->is_number_integer())
        result.step = step->get<int64_t>();
      if (auto run = json.find("run"); run != json.end() && run->is_string())
        result.run = run->get<std::string>();
      // Beside shards it is accel-run's, whatever is damaged in it.
      const bool named = json.contains("files");
      if (own && (named || hasRunShards()))
        return ours = true,
               (!named || checkFiles(json["files"])) &&
                   readRunState((root / name).string(), diagnostics);
    }
    return true;
  }

  /// The files that accel-run's state.json names, by their sizes; resuming
  /// checks their hashes too.
  bool checkFiles(const nlohmann::json &files) {
    bool good = true;
    for (const nlohmann::json &file : files) {
      if (!file.is_object() || !file.contains("name") ||
          !file["name"].is_string() || !file.contains("bytes") ||
          !file["bytes"].is_number_integer())
        continue;
      const fs::path path = root / file["name"].get<std::string>();
      filesOfRun.insert(file["name"].get<std::string>());
      std::error_code failed;
      const uintmax_t size = fs::file_size(path, failed);
      if (!failed && int64_t(size) == file["bytes"].get<int64_t>())
        continue;
      diagnostics.error("invalid-checkpoint", path.string(),
                        failed ? "state.json names it: " + failed.message()
                               : "has " + std::to_string(size) +
                                     " bytes, and state.json names " +
                                     file["bytes"].dump(),
                        "copy the file again");
      good = false;
    }
    return good;
  }

  /// Only files that state.json names are a run's; one that cannot be read and
  /// is none of them is not read.
  void leaveOthersOfRun() {
    for (Part &part : result.parts)
      if (ours && !part.damage.empty() && !filesOfRun.count(part.path))
        part.unread = "a file that state.json does not name";
  }

  /// Of a file of this checkpoint.
  bool hasName(std::string_view begin, std::string_view end) const {
    return std::any_of(names.begin(), names.end(), [&](const fs::path &path) {
      const std::string name = path.filename().string();
      return name.starts_with(begin) && name.ends_with(end) &&
             !apart.count(*path.begin());
    });
  }
  bool hasPart(std::string_view path, PartFormat format) const {
    return std::any_of(
        result.parts.begin(), result.parts.end(), [&](const Part &part) {
          return part.path.starts_with(path) && part.format == format;
        });
  }
  bool as(FolderFormat format, const std::string &meaning) {
    const std::string zero = describeZero(result);
    result.format = format;
    result.meaning = meaning + (zero.empty() ? "" : ", " + zero);
    return true;
  }

  /// Of a folder that accel-run writes to; a checkpoint is a folder of it.
  std::optional<std::string> newestOfRun() {
    std::set<std::string> steps; // step-00000200: by their names, in order
    for (const Part &part : result.parts)
      if (part.runShard && !part.unfinished &&
          part.path.starts_with(plan::checkpointPrefix))
        steps.insert(fs::path(part.path).begin()->string());
    if (steps.empty())
      return std::nullopt;
    return "a run's folder of accel-run, " + std::to_string(steps.size()) +
           (steps.size() == 1 ? " checkpoint" : " checkpoints") +
           ", the newest in " + printablePath(*steps.rbegin());
  }

  bool recognise() {
    if (ours)
      return as(FolderFormat::AccelRun, "a checkpoint of accel-run");
    const bool state = hasName("random_states_", ".pkl");
    if (hasName("", "_optim_states.pt") || hasName("", "_model_states.pt"))
      return state ? as(FolderFormat::Accelerate,
                        "Accelerate's save_state of DeepSpeed")
                   : as(FolderFormat::Deepspeed, "a checkpoint of DeepSpeed");
    if (hasPart("pytorch_model_fsdp_", PartFormat::TorchDcp) ||
        hasPart("optimizer_", PartFormat::TorchDcp))
      return as(FolderFormat::Accelerate,
                "Accelerate's FSDP checkpoint, SHARDED_STATE_DICT");
    if (hasName("pytorch_model_fsdp.bin", ""))
      return as(FolderFormat::Accelerate,
                "Accelerate's FSDP checkpoint, FULL_STATE_DICT");
    if (state)
      return as(FolderFormat::Accelerate, "Accelerate's save_state");
    if (hasPart(".", PartFormat::TorchDcp))
      return as(FolderFormat::TorchDcp,
                "a checkpoint of torch.distributed.checkpoint");
    if (auto newest = newestOfRun())
      return as(FolderFormat::AccelRunOut, *newest);
    if (exists("trainer_state.json"))
      return as(FolderFormat::Trainer, "a checkpoint of transformers' Trainer");
    if (hasPart("", PartFormat::Safetensors) && exists("config.json"))
      return as(FolderFormat::HuggingFace, "a Hugging Face model folder");
    if (hasPart("", PartFormat::Safetensors))
      return as(FolderFormat::Safetensors, "weights as safetensors");
    if (hasPart("", PartFormat::TorchSave))
      return as(FolderFormat::TorchSave, "tensors of torch.save");
    return false;
  }

  fs::path root;
  const Wanted wanted;
  DiagnosticEngine &diagnostics;
  Checkpoint result;
  std::set<fs::path> names;      // of all files, with their folders
  std::set<fs::path> apart;      // folders beside the model that is read
  std::set<fs::path> unfinished; // folders of shards alone
  bool ours = false;
  std::set<std::string> filesOfRun;
};

/// Whether something that is wanted of a part lies where a file of it cannot be
/// read. Of shards the places are known; other files are read whole.
bool isHit(const Part &part, const Damage &damage, Wanted wanted) {
  if (wanted == Wanted::Everything)
    return true;
  if (!part.unread.empty())
    return false;
  if (wanted == Wanted::Training)
    return true;
  // Of DeepSpeed all files hold weights, the optimizer's too.
  if (isZeroName(fs::path(part.path).filename().string()))
    return true;
  if (!isWeights(part))
    return false;
  if (part.format != PartFormat::TorchDcp || part.tensors.empty())
    return true;
  const WeightKeys keys(part);
  return std::any_of(
      part.tensors.begin(), part.tensors.end(), [&](const Tensor &tensor) {
        return keys.roleOf(tensor) == Role::Weight &&
               std::any_of(tensor.pieces.begin(), tensor.pieces.end(),
                           [&](const Piece &piece) {
                             return piece.file == damage.file &&
                                    piece.begin + piece.length > damage.bytes;
                           });
      });
}

/// Reports the damage of what is wanted.
bool checkDamage(const Checkpoint &read, Wanted wanted,
                 DiagnosticEngine &diagnostics) {
  bool good = true;
  for (const Part &part : read.parts)
    for (const Damage &damage : part.damage)
      if (isHit(part, damage, wanted)) {
        diagnostics.report(damage.what);
        good = false;
      }
  return good;
}

} // namespace

const char *toString(PartFormat format) {
  switch (format) {
  case PartFormat::ByName:
    return "by-name";
  case PartFormat::Safetensors:
    return "safetensors";
  case PartFormat::TorchDcp:
    return "torch-dcp";
  case PartFormat::TorchSave:
    return "torch-save";
  }
  return "";
}

const char *toString(FolderFormat format) {
  switch (format) {
  case FolderFormat::AccelRun:
    return "accel-run";
  case FolderFormat::AccelRunOut:
    return "accel-run-out";
  case FolderFormat::Accelerate:
    return "accelerate";
  case FolderFormat::Deepspeed:
    return "deepspeed";
  case FolderFormat::HuggingFace:
    return "huggingface";
  case FolderFormat::Safetensors:
    return "safetensors";
  case FolderFormat::TorchDcp:
    return "torch-dcp";
  case FolderFormat::TorchSave:
    return "torch-save";
  case FolderFormat::Trainer:
    return "trainer";
  }
  return "";
}

std::optional<Checkpoint> readCheckpoint(const std::string &folder,
                                         Wanted wanted,
                                         DiagnosticEngine &diagnostics) {
  auto read = Inspector(folder, wanted, diagnostics).run();
  if (!read)
    return std::nullopt;
  findStates(read->parts);
  if (!checkDamage(*read, wanted, diagnostics))
    return std::nullopt;
  if (wanted == Wanted::Everything)
    checkZeroSaves(*read, diagnostics);
  return read;
}

} // namespace accel::checkpoint
