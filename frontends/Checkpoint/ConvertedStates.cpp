//===- ConvertedStates.cpp - Optimizers whose states go on ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/ConvertedStates.h"
#include "runtime/plan/OptimizerOfStates.h"

namespace accel::checkpoint {

bool checkFactored(const std::set<std::string> &kinds, const std::string &path,
                   DiagnosticEngine &diagnostics) {
  for (const plan::OptimizerDescription &each : plan::optimizers())
    for (const plan::StateRule &rule : each.states)
      if ((rule.shape == plan::StateShape::Rows ||
           rule.shape == plan::StateShape::Columns) &&
          kinds.count(rule.name)) {
        diagnostics.error("not-supported", path,
                          "the optimizer is " + printable(each.name) +
                              ", whose states are factored: '" +
                              printable(rule.name) +
                              "' has an element for a row or a column of a "
                              "parameter",
                          convertedStates);
        return false;
      }
  return true;
}

bool checkKnown(const std::set<std::string> &kinds, const std::string &path,
                DiagnosticEngine &diagnostics) {
  if (kinds.empty() || plan::optimizerOf(kinds))
    return true;
  std::string text;
  for (const std::string &kind : kinds)
    text += (text.empty() ? "'" : ", '") + printable(kind) + "'";
  diagnostics.error("not-supported", path,
                    "the checkpoint holds states " + text +
                        ", which together are those of no optimizer that "
                        "accel-run has",
                    convertedStates);
  return false;
}

bool keepsNoStates(const plan::Plan *plan) {
  return plan && plan::OptimizerRule(plan->job.optimizer).states.empty();
}

} // namespace accel::checkpoint
