//===- OptimizerOfStates.cpp - Whose states a checkpoint holds ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/OptimizerOfStates.h"

#include <algorithm>

namespace accel::plan {

bool hasStates(const OptimizerDescription &optimizer,
               const std::set<std::string> &states) {
  return std::all_of(
      states.begin(), states.end(), [&](const std::string &state) {
        return std::any_of(
            optimizer.states.begin(), optimizer.states.end(),
            [&](const StateRule &rule) { return state == rule.name; });
      });
}

bool hasOwnLayout(const StateRule &rule) {
  return rule.of != StateOf::All || rule.shape != StateShape::Whole;
}

const OptimizerDescription *optimizerOf(const std::set<std::string> &states) {
  const OptimizerDescription *best = nullptr;
  for (const OptimizerDescription &each : optimizers())
    if (each.executed && !states.empty() && hasStates(each, states) &&
        (!best || each.states.size() < best->states.size()))
      best = &each;
  return best;
}

} // namespace accel::plan
