//===- WeightFiles.cpp - Where a checkpoint has its weights ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/WeightFiles.h"
#include "frontends/Checkpoint/Zero.h"
#include "frontends/HuggingFace/Safetensors.h"

#include <algorithm>
#include <map>
#include <set>

namespace accel::checkpoint {

namespace fs = std::filesystem;

namespace {

constexpr const char *apartFromModel =
    "beside the model that transformers loads";

std::string nameOf(const Part &part) {
  return fs::path(part.path).filename().string();
}

std::string inside(const fs::path &root, const fs::path &path) {
  const std::string name = path.lexically_relative(root).string();
  return name.empty() ? "." : name;
}

/// "model_1.safetensors": another model of one Accelerator.
bool isFurtherModel(const std::string &name) {
  for (const auto &[begin, end] :
       {std::pair{"model_", ".safetensors"}, {"pytorch_model_", ".bin"}}) {
    const size_t first = std::string_view(begin).size(),
                 last = std::string_view(end).size();
    if (name.starts_with(begin) && name.ends_with(end) &&
        name.size() > first + last &&
        std::all_of(name.begin() + first, name.end() - last,
                    [](char c) { return c >= '0' && c <= '9'; }))
      return true;
  }
  return false;
}

/// FSDP's state: its name has no other end in an export.
bool isFsdpState(const Part &part) {
  return nameOf(part).starts_with("pytorch_model_fsdp");
}

/// A file, not a folder of torch.distributed.checkpoint, that may be one of
/// several with the model's weights.
bool isChoice(const Part &part) {
  return isWeights(part) && part.format != PartFormat::TorchDcp && !part.zero &&
         !part.runShard && !isFsdpState(part) && !isFurtherModel(nameOf(part));
}

/// A part in a folder below, at `below`, that is training state of the model
/// beside the folder: of FSDP and Accelerate in a folder itself, of DeepSpeed
/// the files of a tag.
bool isStateOfModel(const Part &part, const fs::path &below) {
  const auto depth = std::distance(below.begin(), below.end());
  if (part.format == PartFormat::TorchDcp)
    return depth == 1 && (isFsdpState(part) || !isWeights(part));
  return depth == 2 && isZeroName(nameOf(part));
}

void leaveUnread(Part &part, const char *what) {
  part.unread = what;
  part.meaning += std::string(" (") + what + ", not read)";
}

/// The files that the index names; none, reported, where one is missing.
std::optional<std::set<std::string>>
filesOfIndex(const fs::path &root, const fs::path &folder,
             const fs::path &index, const std::vector<Part> &parts,
             DiagnosticEngine &diagnostics) {
  std::map<std::string, std::set<std::string>> tensors; // by file
  std::set<std::string> named;
  std::vector<std::string> missing;
  std::set<std::string> damaged; // what they hold is not known
  auto open = [&](const std::string &name) {
    const std::string path = inside(root, folder / name);
    named.insert(path);
    for (const Part &part : parts)
      if (part.path == path) {
        if (!part.damage.empty())
          damaged.insert(name);
        for (const Tensor &tensor : part.tensors)
          tensors[name].insert(tensor.name);
        return true;
      }
    missing.push_back(name);
    return true;
  };
  auto holds = [&](const std::string &name, const std::string &tensor) {
    const auto found = tensors.find(name);
    return !missing.empty() || damaged.count(name) ||
           (found != tensors.end() && found->second.count(tensor));
  };
  if (!huggingface::readWeightIndex(index.string(), open, holds, diagnostics))
    return std::nullopt;
  for (const std::string &name : missing) {
    std::error_code failed;
    const std::string own = index.filename().string();
    diagnostics.error("invalid-checkpoint", (folder / name).string(),
                      fs::exists(folder / name, failed)
                          ? own + " names it, and it is no file of torch.save"
                          : "no such file, and " + own + " names it",
                      "copy or download the file again");
  }
  if (!missing.empty())
    return std::nullopt;
  return named;
}

} // namespace

bool isWeights(const Part &part) {
  const std::string name = nameOf(part);
  return part.format != PartFormat::ByName && !name.starts_with("optimizer") &&
         !name.starts_with("scheduler");
}

bool chooseWeights(const fs::path &root, const fs::path &folder,
                   std::vector<Part> &parts, DiagnosticEngine &diagnostics) {
  for (const char *single : {"model.safetensors", "pytorch_model.bin"}) {
    std::error_code failed;
    const fs::path index = folder / (std::string(single) + ".index.json");
    std::set<std::string> read;
    if (fs::exists(folder / single, failed)) {
      read = {inside(root, folder / single)};
    } else if (fs::exists(index, failed)) {
      auto named = filesOfIndex(root, folder, index, parts, diagnostics);
      if (!named)
        return false;
      read = std::move(*named);
    } else {
      continue;
    }
    for (Part &part : parts) {
      const fs::path below =
          fs::path(part.path).lexically_relative(inside(root, folder));
      if (read.count(part.path) || below == "." || *below.begin() == "..")
        continue;
      if (!below.has_parent_path() && part.format != PartFormat::TorchDcp) {
        if (isChoice(part))
          leaveUnread(part, "weights that transformers does not load");
        continue;
      }
      if (part.runShard || isStateOfModel(part, below))
        continue;
      part.apart = inside(root, folder / *below.begin());
      if (part.format != PartFormat::ByName && part.unread.empty())
        leaveUnread(part, apartFromModel);
    }
    return true;
  }
  return true;
}

void preferTrainingState(std::vector<Part> &parts) {
  const bool zero =
      std::any_of(parts.begin(), parts.end(), [](const Part &part) {
        return part.zero && part.unread.empty();
      });
  std::set<fs::path> fsdp; // folders with FSDP's state
  for (const Part &part : parts)
    if (isFsdpState(part) && part.unread.empty())
      fsdp.insert(fs::path(part.path).parent_path());
  for (Part &part : parts)
    if (isChoice(part) && part.unread.empty() &&
        (zero || fsdp.count(fs::path(part.path).parent_path())))
      leaveUnread(part, "the model's export beside its training state");
}

void foldApart(std::vector<Part> &parts) {
  std::map<std::string, Part> folders;
  for (const Part &part : parts)
    if (!part.apart.empty() && !part.unread.empty()) {
      Part &folder = folders[part.apart];
      folder.path = folder.apart = part.apart;
      folder.meaning = folder.unread = apartFromModel;
    }
  std::erase_if(parts, [&](const Part &part) {
    return !part.apart.empty() && folders.count(part.apart);
  });
  for (auto &[path, folder] : folders)
    parts.push_back(std::move(folder));
}

} // namespace accel::checkpoint
