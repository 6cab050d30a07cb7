//===- WeightKeys.h - What each tensor of a part is -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Whether a tensor is a weight is decided here, by the first that holds:
//
// 1. It is a state: an optimizer's dictionary has it (StateKeys.h).
// 2. Weights lie below certain keys, and it does not: `around`.
// 3. It lies below an optimizer's key ("optim") beside those, or it is a
//    training script's count beside flat weights: it is left out by its name,
//    since nothing but this name tells.
// 4. All others are weights.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CHECKPOINT_WEIGHTKEYS_H
#define ACCEL_FRONTENDS_CHECKPOINT_WEIGHTKEYS_H

#include "frontends/Checkpoint/Checkpoint.h"

#include <set>

namespace accel::checkpoint {

/// What a tensor of a part is to the model.
enum class Role {
  Weight,
  State, // of an optimizer beside the model
  Beside // something else beside it
};

/// Where the weights of a part lie, as the keys of its tensors say. findStates
/// was called before.
class WeightKeys {
public:
  explicit WeightKeys(const Part &part);

  /// The keys around the weights: {"model"}, {"app", "model"}, or none.
  /// "module" and "state_dict" are such only where no other weights lie beside;
  /// any key is where an optimizer's names of parameters begin below it.
  const std::vector<std::string> &around() const { return keys; }
  Role roleOf(const Tensor &tensor) const;

private:
  bool isBelow(const Tensor &tensor) const;
  bool isOptimizers(const Tensor &tensor) const;
  bool mayBeWeights(const Tensor &tensor) const;
  bool othersBeside() const;
  bool optimizerBeside() const;
  bool find(size_t depth);
  bool findByStates();
  void choose();
  void findNumbers();
  bool isCounter(const Tensor &tensor) const;

  const Part &part;
  std::vector<std::string> keys;
  std::set<std::string> parameters; // that states are of, but no numbers
  /// Keys of dictionaries beside flat weights that hold numbers alone, and of
  /// counts.
  std::set<std::string> numbers;
  bool optimizer = false; // lies beside them
};

} // namespace accel::checkpoint

#endif // ACCEL_FRONTENDS_CHECKPOINT_WEIGHTKEYS_H
