//===- StateKeys.h - Which tensors an optimizer keeps -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// An optimizer's dictionary is {"state": {parameter: {kind: tensor}},
// "param_groups": ..}, under any key. torch also joins its keys:
// flatten_optimizer_state_dict has "state.layer.weight.exp_avg" and
// "param_groups.layer.weight.lr" as one key each. Modules may be called "state"
// as well, so that more than this word must say it. In this order:
//
// 1. The file. One called "optimizer.." holds an optimizer; other safetensors
//    hold a model, whatever its modules are called.
// 2. Groups. "param_groups" lies beside "state", as a list or with an "lr" of
//    the same parameter.
// 3. States. Below "state" the name of a weight has a kind of a known
//    optimizer in that weight's shape. Kinds of one word ("step", "sum") may be
//    a module's: they say nothing alone. Nested dictionaries, which modules do
//    not make, may have such kinds alone, of parameters by any name or number.
//
// A dictionary that is an optimizer's is so as a whole, unless torch's joined
// keys lie among weights. There each tensor needs evidence of its own, and one
// that has states or a rate itself is a weight. Nothing else is a state: what
// is kept can be removed later, what was left out is lost.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CHECKPOINT_STATEKEYS_H
#define ACCEL_FRONTENDS_CHECKPOINT_STATEKEYS_H

#include "frontends/Checkpoint/Checkpoint.h"

namespace accel::checkpoint {

/// Sets Tensor::optimizer of what optimizers keep, tensors and values. Their
/// paths are {.., "state", parameter, kind} afterwards, joined keys taken
/// apart.
void findStates(std::vector<Part> &parts);

/// Whether a value that is no tensor is of an optimizer's groups. One without
/// states is known by this key alone.
bool isOfGroups(const std::vector<std::string> &path);

/// The keys of a path from `begin` on, joined by dots.
std::string joinKeys(const std::vector<std::string> &path, size_t begin = 0);

} // namespace accel::checkpoint

#endif // ACCEL_FRONTENDS_CHECKPOINT_STATEKEYS_H
