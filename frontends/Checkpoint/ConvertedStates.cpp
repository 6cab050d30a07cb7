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

/// Those that keep a "momentum_buffer" alone of a matrix.
static constexpr const char *sgd = "sgd", *muon = "muon";

std::string optimizerOfGroups(const std::set<std::string> &kinds,
                              const std::set<std::string> &hyperparameters) {
  if (!kinds.count("momentum_buffer"))
    return "";
  if (hyperparameters.count("ns_steps"))
    return muon;
  return hyperparameters.count("dampening") ? sgd : "";
}

const plan::OptimizerDescription *
optimizerOfStates(const std::set<std::string> &kinds,
                  const std::set<std::string> &told, bool matrices,
                  const plan::Plan *plan, const std::string &path,
                  DiagnosticEngine &diagnostics) {
  if (!checkFactored(kinds, path, diagnostics) ||
      !checkKnown(kinds, path, diagnostics))
    return nullptr;
  const plan::OptimizerDescription *planned =
      plan ? plan::findOptimizer(plan->job.optimizer.name) : nullptr;
  if (planned && (!planned->executed || !plan::hasStates(*planned, kinds)))
    planned = nullptr;
  if (told.empty()) {
    const plan::OptimizerDescription *fewest = plan::optimizerOf(kinds);
    if (kinds != std::set<std::string>{"momentum_buffer"} || !matrices)
      return fewest;
    if (planned)
      return planned;
    diagnostics.warning(
        "ambiguous-states", path,
        "'momentum_buffer' of matrices alone may be SGD's or Muon's, and the "
        "checkpoint has no hyperparameters that tell; taken for " +
            std::string(fewest->name),
        "give the plan of the job by --plan, whose optimizer is then taken");
    return fewest;
  }
  const plan::OptimizerDescription *own = plan::findOptimizer(*told.begin());
  if (told.size() > 1 || !plan::hasStates(*own, kinds)) {
    diagnostics.error("not-supported", path,
                      "the checkpoint holds states of " +
                          std::string(own->name) + " and of another optimizer",
                      convertedStates);
    return nullptr;
  }
  if (planned && planned != own) {
    diagnostics.error("conflicting-arguments", path,
                      "the groups of the checkpoint's optimizer are those of " +
                          std::string(own->name) + ", and the plan's is " +
                          planned->name,
                      "give the plan of the job that was trained");
    return nullptr;
  }
  return own;
}

bool keepsNoStates(const plan::Plan *plan) {
  return plan && plan::OptimizerRule(plan->job.optimizer).states.empty();
}

} // namespace accel::checkpoint
