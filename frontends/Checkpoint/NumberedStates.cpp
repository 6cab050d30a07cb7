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

std::string pathOf(const Checkpoint &read, const Part &part) {
  return (std::filesystem::path(read.folder) / part.path).string();
}

using Parameters = std::vector<const plan::Parameter *>;

/// A group of the plan that has parameters.
struct PlannedGroup {
  size_t index = 0;
  Parameters parameters;
};

class Numbers {
public:
  Numbers(const Checkpoint &read, const Part &part,
          const std::vector<ParamGroup> &groups, const plan::Plan &plan,
          DiagnosticEngine &diagnostics)
      : path(pathOf(read, part)), groups(groups), plan(plan),
        diagnostics(diagnostics) {
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
    return pair(planned);
  }

private:
  /// Which groups of the plan a group of the file may be.
  struct Pairs {
    explicit Pairs(size_t n)
        : open(n, std::vector<bool>(n)), ofGroup(n), ofPlanned(n) {}
    void add(size_t group, size_t planned) {
      open[group][planned] = true;
      ++ofGroup[group];
      ++ofPlanned[planned];
    }
    void remove(size_t group, size_t planned) {
      if (!open[group][planned])
        return;
      open[group][planned] = false;
      --ofGroup[group];
      --ofPlanned[planned];
    }
    /// One that is the only choice for either of the two.
    std::optional<std::pair<size_t, size_t>> single() const {
      const size_t n = open.size();
      for (size_t k = 0; k < n; ++k) {
        for (size_t j = 0; ofGroup[k] == 1 && j < n; ++j)
          if (open[k][j])
            return std::pair{k, j};
        for (size_t i = 0; ofPlanned[k] == 1 && i < n; ++i)
          if (open[i][k])
            return std::pair{i, k};
      }
      return std::nullopt;
    }
    std::vector<std::vector<bool>> open; // [group][planned group]
    std::vector<size_t> ofGroup, ofPlanned;
  };

  /// Shapes first, which leave one choice whatever the rates are; then the
  /// hyperparameters of groups that shapes leave open.
  std::optional<std::map<std::string, std::string>>
  pair(const std::vector<PlannedGroup> &planned) {
    const size_t n = groups.size();
    Pairs pairs(n);
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j)
        if (agree(groups[i], planned[j].parameters))
          pairs.add(i, j);
    const size_t left = n - takeSingle(pairs, planned);
    if (size_t(n - std::count(pairs.ofGroup.begin(), pairs.ofGroup.end(), 0)) !=
        left)
      return refuse(planned);
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j)
        if (!sameHyperparameters(groups[i], planned[j].index))
          pairs.remove(i, j);
    // A rate that fits two groups of either side tells nothing, even where
    // others are taken: in the script it may have been another's.
    auto several = [](size_t count) { return count > 1; };
    if (std::any_of(pairs.ofGroup.begin(), pairs.ofGroup.end(), several) ||
        std::any_of(pairs.ofPlanned.begin(), pairs.ofPlanned.end(), several) ||
        takeSingle(pairs, planned) != left)
      return ambiguous();
    return std::move(names);
  }

  /// Names the parameters of groups for which, or for whose planned group, one
  /// choice is left, and takes both away, until there are none; how many.
  size_t takeSingle(Pairs &pairs, const std::vector<PlannedGroup> &planned) {
    size_t taken = 0;
    for (; const auto single = pairs.single(); ++taken) {
      const auto [i, j] = *single;
      for (size_t k = 0; k < groups[i].params.size(); ++k)
        names[groups[i].params[k]] = planned[j].parameters[k]->fqn;
      for (size_t k = 0; k < groups.size(); ++k) {
        pairs.remove(i, k);
        pairs.remove(k, j);
      }
    }
    return taken;
  }

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

/// "module.layers.0._orig_mod.weight" as "layers.0.weight": torch's
/// get_state_dict drops the names of DDP, torch.compile, FSDP and of activation
/// checkpointing as well.
std::string unwrapped(const std::string &name) {
  std::string kept;
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('.', at), name.size());
    const std::string key = name.substr(at, end - at);
    if (!(at == 0 && key == "module") && key != "_orig_mod" &&
        key != "_fsdp_wrapped_module" && key != "_checkpoint_wrapped_module")
      kept += (kept.empty() ? "" : ".") + key;
    at = end + 1;
  }
  return kept;
}

/// By number, of groups that all have names.
std::optional<std::map<std::string, std::string>>
givenNames(const std::string &path, const std::vector<ParamGroup> &groups,
           const std::function<bool(const std::string &)> &isParameter,
           DiagnosticEngine &diagnostics) {
  std::map<std::string, std::string> names;
  std::set<std::string> given;
  for (const ParamGroup &group : groups)
    for (size_t i = 0; i < group.params.size(); ++i) {
      if (group.names.size() != group.params.size() ||
          !given.insert(group.names[i]).second) {
        diagnostics.error("invalid-checkpoint", path,
                          "param_names of the optimizer's groups do not name "
                          "each of its parameters once",
                          "save the checkpoint again");
        return std::nullopt;
      }
      const std::string &name = group.names[i];
      names[group.params[i]] = isParameter(name) ? name : unwrapped(name);
    }
  return names;
}

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
               const std::vector<ParamGroup> &groups, const plan::Plan *plan,
               const std::function<bool(const std::string &)> &isParameter,
               DiagnosticEngine &diagnostics) {
  if (std::any_of(groups.begin(), groups.end(),
                  [](const ParamGroup &group) { return !group.names.empty(); }))
    return givenNames(pathOf(read, part), groups, isParameter, diagnostics);
  if (!plan) {
    diagnostics.error("not-supported", read.folder,
                      "the optimizer numbers its parameters in place of naming "
                      "them",
                      "give the plan of the same job by --plan, which has them "
                      "in their order");
    return std::nullopt;
  }
  return Numbers(read, part, groups, *plan, diagnostics).run();
}

} // namespace accel::checkpoint
