//===- WeightFiles.cpp - Where a checkpoint has its weights ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/WeightFiles.h"
#include "frontends/HuggingFace/Safetensors.h"

#include <algorithm>
#include <map>
#include <set>

namespace accel::checkpoint {

namespace fs = std::filesystem;

namespace {

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

/// Keys under which training scripts put the model's weights.
constexpr const char *modelKeys[] = {"model", "model_state_dict", "state_dict",
                                     "module"};
/// Of these "model" and "model_state_dict" say what they hold; the others are
/// modules' names too.
bool saysModel(const std::string &key) { return key.starts_with("model"); }
/// ... and an optimizer beside them.
bool isOptimizerKey(const std::string &key) {
  return key == "optim" || key == "optimizer" || key == "optimizers" ||
         key == "optimizer_states" || key == "optimizer_state_dict";
}
/// What training scripts call their counts.
constexpr std::string_view counters[] = {
    "step",       "steps",         "global_step",  "global_steps",
    "train_step", "training_step", "current_step", "completed_steps",
    "epoch",      "epochs",        "global_epoch", "current_epoch",
    "iter",       "iter_num",      "iteration",    "iterations"};

bool isFloat(const Tensor &tensor) {
  return tensor.dtype.find("float") != std::string::npos;
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
    for (Part &part : parts)
      if (isChoice(part) && !read.count(part.path) &&
          inside(root, (root / part.path).parent_path()) ==
              inside(root, folder))
        leaveUnread(part, "weights that transformers does not load");
    return true;
  }
  return true;
}

void preferTrainingState(std::vector<Part> &parts) {
  const bool zero =
      std::any_of(parts.begin(), parts.end(),
                  [](const Part &part) { return part.zero != nullptr; });
  std::set<fs::path> fsdp; // folders with FSDP's state
  for (const Part &part : parts)
    if (isFsdpState(part))
      fsdp.insert(fs::path(part.path).parent_path());
  for (Part &part : parts)
    if (isChoice(part) && part.unread.empty() &&
        (zero || fsdp.count(fs::path(part.path).parent_path())))
      leaveUnread(part, "the model's export beside its training state");
}

WeightKeys::WeightKeys(const Part &part) : part(part), states(part) {
  choose();
  findNumbers();
}

Role WeightKeys::roleOf(const Tensor &tensor) const {
  if (states.has(tensor) || isOptimizers(tensor))
    return Role::State;
  return isBelow(tensor) &&
                 (tensor.path.empty() || !numbers.count(tensor.path[0]))
             ? Role::Weight
             : Role::Beside;
}

/// Whether a tensor lies below all of `keys`.
bool WeightKeys::isBelow(const Tensor &tensor) const {
  std::string prefix; // of names, which count the items of lists too
  for (const std::string &key : keys)
    prefix += key + ".";
  const std::vector<std::string> &path = tensor.path;
  return path.size() >= keys.size() &&
         std::equal(keys.begin(), keys.end(), path.begin()) &&
         (path.size() > keys.size() || tensor.name.starts_with(prefix));
}

/// Whether a tensor lies below an optimizer's key beside `keys`.
bool WeightKeys::isOptimizers(const Tensor &tensor) const {
  const size_t depth = keys.empty() ? 0 : keys.size() - 1;
  return tensor.path.size() > depth + 1 &&
         std::equal(keys.begin(), keys.begin() + depth, tensor.path.begin()) &&
         isOptimizerKey(tensor.path[depth]);
}

/// Neither an optimizer's, a schedule's and random states, nor a number, as a
/// count or a loss.
bool WeightKeys::mayBeWeights(const Tensor &tensor) const {
  const std::vector<std::string> &path = tensor.path;
  return !tensor.shape.empty() && isFloat(tensor) && !states.has(tensor) &&
         !isOptimizers(tensor) &&
         (path.empty() || (path[0].find("scheduler") == std::string::npos &&
                           path[0].find("optimizer") == std::string::npos));
}

bool WeightKeys::find(size_t depth) {
  for (const char *key : modelKeys)
    for (const Tensor &tensor : part.tensors)
      if (tensor.path.size() > depth + 1 && tensor.path[depth] == key &&
          !states.has(tensor)) {
        keys.assign(tensor.path.begin(), tensor.path.begin() + depth + 1);
        return true;
      }
  return false;
}

/// {"net": .., "opt": ..}: the optimizer names parameters as the model does.
bool WeightKeys::findByStates() {
  if (states.parameters().empty())
    return false;
  for (const Tensor &tensor : part.tensors)
    for (size_t i = 1; i < tensor.path.size() && mayBeWeights(tensor); ++i)
      if (states.parameters().count(joinKeys(tensor.path, i))) {
        keys.assign(tensor.path.begin(), tensor.path.begin() + i);
        return true;
      }
  return false;
}

void WeightKeys::choose() {
  auto othersBeside = [&] {
    return std::any_of(part.tensors.begin(), part.tensors.end(),
                       [&](const Tensor &tensor) {
                         return !isBelow(tensor) && mayBeWeights(tensor);
                       });
  };
  if (find(0)) {
    // Other weights beside them: the keys are parts of the model.
    if (!saysModel(keys[0]) && othersBeside())
      keys.clear();
    return;
  }
  // {"app": AppState(model, optimizer)}, as torch's recipe saves: an optimizer
  // beside says that the keys are no modules of a model.
  if (find(1)) {
    if (states.isBelow(keys, 1) ||
        std::any_of(part.tensors.begin(), part.tensors.end(),
                    [&](const Tensor &tensor) { return isOptimizers(tensor); }))
      return;
    keys.clear();
  }
  if (findByStates() && othersBeside())
    keys.clear();
}

/// A training script's count by its name: an integer, or a float of which no
/// optimizer keeps states. Files of safetensors are a model's own.
bool WeightKeys::isCounter(const Tensor &tensor) const {
  const std::string &name = tensor.path.back();
  if (part.format == PartFormat::Safetensors ||
      std::find(std::begin(counters), std::end(counters), name) ==
          std::end(counters))
    return false;
  if (isFloat(tensor))
    return tensor.shape.empty() && optimizer &&
           !states.parameters().count(joinKeys(tensor.path));
  return tensor.bytes == elementBytes(tensor.dtype);
}

/// {"layer.weight": .., "optimizer": .., "train_state": {"step": ..}}, and
/// {"layer.weight": .., "step": ..}.
void WeightKeys::findNumbers() {
  if (!keys.empty())
    return;
  bool some = false, flat = false;
  for (const Tensor &tensor : part.tensors) {
    const bool kept = states.has(tensor) || isOptimizers(tensor);
    optimizer |= kept;
    some |= !kept && mayBeWeights(tensor);
    flat |= !kept && mayBeWeights(tensor) && tensor.path.size() == 1;
  }
  if (!some)
    return;
  std::set<std::string> others;
  for (const Tensor &tensor : part.tensors) {
    if (tensor.path.empty() || states.has(tensor) || isOptimizers(tensor))
      continue;
    // An optimizer beside says that numbers of any name are a script's.
    const bool number =
        tensor.path.size() > 1 && flat && optimizer && tensor.shape.empty();
    (number || isCounter(tensor) ? numbers : others).insert(tensor.path[0]);
  }
  for (const std::string &key : others)
    numbers.erase(key);
}

} // namespace accel::checkpoint
