//===- StateKeys.h - Which tensors an optimizer keeps -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// An optimizer's dictionary is {"state": {parameter: {kind: tensor}},
// "param_groups": ..}, under any key. Modules may be called "state" too, so
// that the parameters and kinds below it decide.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CHECKPOINT_STATEKEYS_H
#define ACCEL_FRONTENDS_CHECKPOINT_STATEKEYS_H

#include "frontends/Checkpoint/Checkpoint.h"

#include <set>

namespace accel::checkpoint {

/// Gives the keys that torch joined (flatten_optimizer_state_dict has
/// "state.layer.weight.exp_avg" and "param_groups.layer.weight.lr" as one key
/// each) the path that they have otherwise. Only where "layer.weight" names
/// another tensor of the checkpoint and "state.layer.weight" none, and for
/// others with the same kinds beside these.
void nestFlattenedStates(std::vector<Part> &parts);

/// The optimizers' dictionaries of a part: those where some entry of "state" is
/// the name of another tensor, or holds a "step" or a state of an optimizer
/// that is known.
class StateKeys {
public:
  explicit StateKeys(const Part &part);

  /// Whether an optimizer's dictionary has the tensor.
  bool has(const Tensor &tensor) const;
  /// Whether a value that is no tensor is of an optimizer's groups. One without
  /// states is known by this key alone.
  static bool isOfGroups(const Tensor &value);
  /// Whether one lies below the first `depth` of `keys`.
  bool isBelow(const std::vector<std::string> &keys, size_t depth) const;
  /// The names of parameters that states are of; numbers are none.
  const std::set<std::string> &parameters() const { return names; }

private:
  std::set<std::vector<std::string>> dictionaries; // their keys
  std::set<std::string> names;
};

/// The keys of a path from `begin` on, joined by dots.
std::string joinKeys(const std::vector<std::string> &path, size_t begin = 0);

} // namespace accel::checkpoint

#endif // ACCEL_FRONTENDS_CHECKPOINT_STATEKEYS_H
