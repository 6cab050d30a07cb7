//===- OptimizerOfStates.h - Whose states a checkpoint holds ----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_OPTIMIZEROFSTATES_H
#define ACCEL_RUNTIME_PLAN_OPTIMIZEROFSTATES_H

#include "runtime/plan/Optimizers.h"

#include <set>

namespace accel::plan {

/// Whether each of these is the name of a state of the optimizer.
bool hasStates(const OptimizerDescription &optimizer,
               const std::set<std::string> &states);

/// Whether checkpoints of accel-run say where this state of a parameter stands
/// apart from the parameter: not each has it, or with as many elements.
bool hasOwnLayout(const StateRule &rule);

/// The optimizer that has written states of these names: the executed one with
/// the fewest others; null where there is none.
const OptimizerDescription *optimizerOf(const std::set<std::string> &states);

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_OPTIMIZEROFSTATES_H
