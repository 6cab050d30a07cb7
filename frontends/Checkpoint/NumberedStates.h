//===- NumberedStates.h - States of parameters by number --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// torch's optimizers number their parameters in place of naming them: those of
// the first group, then those of the next, each as model.named_parameters() has
// them. So save DDP and a single process under Accelerate (optimizer.bin) and
// transformers' Trainer (optimizer.pt). A plan has the names in this order. An
// optimizer that was made from named parameters says the name of each number
// itself, in any order ("param_names" of its groups).
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CHECKPOINT_NUMBEREDSTATES_H
#define ACCEL_FRONTENDS_CHECKPOINT_NUMBEREDSTATES_H

#include "frontends/Checkpoint/ParamGroups.h"

#include <functional>

namespace accel::plan {
struct Plan;
}

namespace accel::checkpoint {

/// Whether all keys under "state" are numbers, of which there are some.
bool numbersParameters(const Part &part);

/// The parameter of each number in `part`, which numbersParameters. Where
/// `groups` of the file have names, it is the one that they say, without the
/// names of torch's wrappers unless `isParameter`. Else they are those of the
/// plan, in any order, or one that has them all; what is known of their shapes
/// must agree; groups that shapes leave open must each have the learning rate
/// and weight decay of one group of the plan, and no two of the same one.
/// Reports and returns nothing where no such order is found, or more than one,
/// or there is no plan.
std::optional<std::map<std::string, std::string>>
namesOfNumbers(const Checkpoint &read, const Part &part,
               const std::vector<ParamGroup> &groups, const plan::Plan *plan,
               const std::function<bool(const std::string &)> &isParameter,
               DiagnosticEngine &diagnostics);

} // namespace accel::checkpoint

#endif // ACCEL_FRONTENDS_CHECKPOINT_NUMBEREDSTATES_H
