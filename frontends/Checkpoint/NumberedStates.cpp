//===- NumberedStates.cpp - States of parameters by number ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/NumberedStates.h"
#include "runtime/plan/Plan.h"

#include <algorithm>
#include <filesystem>

namespace accel::checkpoint {

namespace {

bool isState(const Tensor &tensor) {
  return tensor.path.size() >= 3 &&
         tensor.path[tensor.path.size() - 3] == "state";
}
const std::string &keyOf(const Tensor &tensor) {
  return tensor.path[tensor.path.size() - 2];
}

using Parameters = std::vector<const plan::Parameter *>;

/// A group of the plan that no group of the file has taken.
struct PlannedGroup {
  size_t index = 0;
  Parameters parameters;
};

class Numbers {
public:
  Numbers(const Checkpoint &read, const Part &part,
          const std::vector<ParamGroup> &groups, const plan::Plan &plan,
          DiagnosticEngine &diagnostics)
      : path((std::filesystem::path(read.folder) / part.path).string()),
        groups(groups), plan(plan), diagnostics(diagnostics) {
    for (const Tensor &tensor : part.tensors)
      if (isState(tensor) && tensor.path.back() != "step")
        shapes[keyOf(tensor)] = tensor.shape;
  }

  std::optional<std::map<std::string, std::string>> run() {
    if (groups.empty())
      return fail("invalid-checkpoint",
                  "the optimizer numbers parameters, and its param_groups list "
                  "none",
                  "save the checkpoint again");
    Parameters all;
    std::vector<PlannedGroup> planned(plan.job.optimizer.groups.size());
    for (size_t i = 0; i < planned.size(); ++i)
      planned[i].index = i;
    for (const plan::Parameter &parameter : plan.parameters)
      if (parameter.trainable) {
        all.push_back(&parameter);
        planned[parameter.group].parameters.push_back(&parameter);
      }
    std::erase_if(planned,
                  [](const PlannedGroup &g) { return g.parameters.empty(); });
    if (groups.size() == 1)
      planned = {{0, all}};
    if (planned.size() != groups.size())
      return refuse(planned);
    const std::vector<PlannedGroup> whole = planned;
    for (const ParamGroup &group : groups) {
      std::vector<PlannedGroup *> fits;
      for (PlannedGroup &each : planned)
        if (agree(group, each.parameters))
          fits.push_back(&each);
      if (fits.empty())
        return refuse(whole);
      if (fits.size() > 1)
        std::erase_if(fits, [&](const PlannedGroup *each) {
          return !sameHyperparameters(group, each->index);
        });
      if (fits.size() != 1)
        return ambiguous();
      for (size_t i = 0; i < group.params.size(); ++i)
        names[group.params[i]] = fits[0]->parameters[i]->fqn;
      fits[0]->parameters.clear();
    }
    return std::move(names);
  }

private:
  std::nullopt_t fail(const std::string &code, const std::string &message,
                      const std::string &hint) {
    diagnostics.error(code, path, message, hint);
    return std::nullopt;
  }
  std::nullopt_t refuse(const std::vector<PlannedGroup> &planned) {
    std::string own, theirs;
    auto add = [](std::string &text, size_t size) {
      text += (text.empty() ? "" : " and ") + std::to_string(size);
    };
    for (const ParamGroup &group : groups)
      add(own, group.params.size());
    for (const PlannedGroup &group : planned)
      add(theirs, group.parameters.size());
    return fail("conflicting-arguments",
                "the optimizer has " + own +
                    " parameters in its groups, and the plan " + theirs +
                    (own == theirs ? " of other shapes" : ""),
                "optimizer.groups and trainable in job.yaml make groups as the "
                "script's optimizer had them");
  }
  std::nullopt_t ambiguous() {
    return fail("not-supported",
                "groups of the optimizer have parameters of the same shapes, "
                "and lr and weight_decay do not tell which are which of the "
                "plan's",
                "plan with lr and weight_decay of the script's groups, or save "
                "by torch's get_optimizer_state_dict");
  }

  bool agree(const ParamGroup &group, const Parameters &parameters) const {
    if (group.params.size() != parameters.size())
      return false;
    for (size_t i = 0; i < parameters.size(); ++i)
      if (auto shape = shapes.find(group.params[i]);
          shape != shapes.end() && shape->second != parameters[i]->shape)
        return false;
    return true;
  }
  bool sameHyperparameters(const ParamGroup &group, size_t index) const {
    const plan::OptimizerGroup &own = plan.job.optimizer.groups[index];
    const auto rate = group.baseRate(), decay = group.value("weight_decay");
    return rate && decay && sameHyperparameter(*rate, own.lr) &&
           sameHyperparameter(*decay, own.weightDecay);
  }

  const std::string path;
  const std::vector<ParamGroup> &groups;
  const plan::Plan &plan;
  DiagnosticEngine &diagnostics;
  std::map<std::string, std::vector<int64_t>> shapes; // of states, by number
  std::map<std::string, std::string> names;
};

} // namespace

bool numbersParameters(const Part &part) {
  bool some = false;
  for (const Tensor &tensor : part.tensors)
    if (isState(tensor)) {
      const std::string &key = keyOf(tensor);
      some = true;
      if (key.empty() || key.find_first_not_of("0123456789") != key.npos)
        return false;
    }
  return some;
}

std::optional<std::map<std::string, std::string>>
namesOfNumbers(const Checkpoint &read, const Part &part,
               const std::vector<ParamGroup> &groups, const plan::Plan &plan,
               DiagnosticEngine &diagnostics) {
  return Numbers(read, part, groups, plan, diagnostics).run();
}

} // namespace accel::checkpoint
