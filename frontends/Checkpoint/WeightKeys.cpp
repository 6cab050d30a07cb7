//===- WeightKeys.cpp - What each tensor of a part is ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/WeightKeys.h"
#include "frontends/Checkpoint/StateKeys.h"

#include <algorithm>

namespace accel::checkpoint {

namespace {

/// Dictionaries that are looked into for the keys of weights.
constexpr size_t mostKeys = 4;

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

WeightKeys::WeightKeys(const Part &part) : part(part) {
  for (const Tensor &tensor : part.tensors)
    if (const auto at = tensor.optimizer;
        at && tensor.path[*at] == "state" &&
        tensor.path[*at + 1].find_first_not_of("0123456789") !=
            std::string::npos)
      parameters.insert(tensor.path[*at + 1]);
  choose();
  findNumbers();
}

Role WeightKeys::roleOf(const Tensor &tensor) const {
  if (tensor.optimizer)
    return Role::State;
  return isBelow(tensor) && !isOptimizers(tensor) &&
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
  return !tensor.shape.empty() && isFloat(tensor) && !tensor.optimizer &&
         !isOptimizers(tensor) &&
         (path.empty() || (path[0].find("scheduler") == std::string::npos &&
                           path[0].find("optimizer") == std::string::npos));
}

bool WeightKeys::find(size_t depth) {
  for (const char *key : modelKeys)
    for (const Tensor &tensor : part.tensors)
      if (tensor.path.size() > depth + 1 && tensor.path[depth] == key &&
          !tensor.optimizer &&
          std::none_of(tensor.path.begin(), tensor.path.begin() + depth,
                       isOptimizerKey)) {
        keys.assign(tensor.path.begin(), tensor.path.begin() + depth + 1);
        return true;
      }
  return false;
}

/// {"net": .., "opt": ..}: the optimizer names parameters as the model does.
bool WeightKeys::findByStates() {
  if (parameters.empty())
    return false;
  for (const Tensor &tensor : part.tensors)
    for (size_t i = 1; i < tensor.path.size() && mayBeWeights(tensor); ++i)
      if (parameters.count(joinKeys(tensor.path, i))) {
        keys.assign(tensor.path.begin(), tensor.path.begin() + i);
        return true;
      }
  return false;
}

bool WeightKeys::othersBeside() const {
  return std::any_of(part.tensors.begin(), part.tensors.end(),
                     [&](const Tensor &tensor) {
                       return !isBelow(tensor) && mayBeWeights(tensor);
                     });
}

/// Below the last but one of `keys`, or below its key there.
bool WeightKeys::optimizerBeside() const {
  return std::any_of(
      part.tensors.begin(), part.tensors.end(), [&](const Tensor &tensor) {
        return isOptimizers(tensor) ||
               (tensor.optimizer && *tensor.optimizer + 1 >= keys.size() &&
                std::equal(keys.begin(), keys.end() - 1, tensor.path.begin()));
      });
}

void WeightKeys::choose() {
  if (find(0)) {
    // Other weights beside them: the keys are parts of the model.
    if (!saysModel(keys[0]) && othersBeside())
      keys.clear();
    return;
  }
  // {"app": AppState(model, optimizer)}, as torch's recipe saves, and
  // {"state": {"model", "optimizers"}} of Composer: an optimizer beside says
  // that the keys are no modules of a model, or nothing but "model" there.
  for (size_t depth = 1; depth < mostKeys; ++depth)
    if (find(depth)) {
      if (optimizerBeside() || (saysModel(keys.back()) && !othersBeside()))
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
           !parameters.count(joinKeys(tensor.path));
  return tensor.bytes == elementBytes(tensor.dtype);
}

/// {"layer.weight": .., "optimizer": .., "train_state": {"step": ..}}, and
/// {"layer.weight": .., "step": ..}.
void WeightKeys::findNumbers() {
  if (!keys.empty())
    return;
  bool some = false, flat = false;
  for (const Tensor &tensor : part.tensors) {
    const bool kept = tensor.optimizer || isOptimizers(tensor);
    optimizer |= kept;
    some |= !kept && mayBeWeights(tensor);
    flat |= !kept && mayBeWeights(tensor) && tensor.path.size() == 1;
  }
  if (!some)
    return;
  std::set<std::string> others;
  for (const Tensor &tensor : part.tensors) {
    if (tensor.path.empty() || tensor.optimizer || isOptimizers(tensor))
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
