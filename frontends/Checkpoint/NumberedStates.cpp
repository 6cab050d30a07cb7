//===- NumberedStates.cpp - States of parameters by number ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/NumberedStates.h"
#include "frontends/Checkpoint/TorchSave.h"
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

class Numbers {
public:
  Numbers(const Checkpoint &read, const Part &part, const plan::Plan &plan,
          DiagnosticEngine &diagnostics)
      : path((std::filesystem::path(read.folder) / part.path).string()),
        plan(plan), diagnostics(diagnostics) {
    for (const Tensor &tensor : part.tensors)
      if (isState(tensor) && tensor.path.back() != "step")
        shapes[keyOf(tensor)] = tensor.shape;
  }

  std::optional<std::map<std::string, std::string>> run() {
    if (!readGroups())
      return std::nullopt;
    Parameters all;
    std::vector<Parameters> planned(plan.job.optimizer.groups.size());
    for (const plan::Parameter &parameter : plan.parameters)
      if (parameter.trainable) {
        all.push_back(&parameter);
        planned[parameter.group].push_back(&parameter);
      }
    std::erase_if(planned, [](const Parameters &g) { return g.empty(); });
    if (groups.size() == 1)
      planned = {all};
    if (planned.size() != groups.size())
      return refuse(planned);
    for (const std::vector<std::string> &group : groups) {
      // Two that could be it are told apart by their place.
      auto found = planned.end();
      for (auto it = planned.begin(); it != planned.end(); ++it)
        if (!it->empty() && agree(group, *it)) {
          if (found != planned.end() && !sameShapes(*found, *it))
            return ambiguous();
          if (found == planned.end())
            found = it;
        }
      if (found == planned.end())
        return refuse(planned);
      for (size_t i = 0; i < group.size(); ++i)
        names[group[i]] = (*found)[i]->fqn;
      found->clear();
    }
    return std::move(names);
  }

private:
  std::nullopt_t fail(const std::string &code, const std::string &message,
                      const std::string &hint) {
    diagnostics.error(code, path, message, hint);
    return std::nullopt;
  }
  std::nullopt_t refuse(const std::vector<Parameters> &planned) {
    auto sizes = [](const auto &list) {
      std::string text;
      for (const auto &group : list)
        text += (text.empty() ? "" : " and ") + std::to_string(group.size());
      return text;
    };
    return fail("conflicting-arguments",
                "the optimizer has " + sizes(groups) +
                    " parameters in its groups, and the plan " +
                    sizes(planned) +
                    (sizes(groups) == sizes(planned) ? " of other shapes" : ""),
                "optimizer.groups and trainable in job.yaml make groups as the "
                "script's optimizer had them");
  }
  std::nullopt_t ambiguous() {
    return fail("not-supported",
                "the optimizer's groups fit those of the plan in several ways",
                "save it by torch's get_optimizer_state_dict");
  }

  /// param_groups, a list of dictionaries with "params": [0, 1, ...].
  bool readGroups() {
    return takeSavedPickle(path, diagnostics, [&](const Pickle &pickle) {
      return takeGroups(pickle);
    });
  }

  bool takeGroups(const Pickle &pickle) {
    const auto list = pickle.field(pickle.root(), "param_groups");
    for (ValueId group :
         list ? pickle.at(*list).items : std::vector<ValueId>()) {
      const auto numbers = pickle.field(group, "params");
      if (!numbers || !pickle.is(*numbers, Pickle::Kind::List))
        continue;
      std::vector<std::string> &own = groups.emplace_back();
      for (ValueId number : pickle.at(*numbers).items)
        own.push_back(std::to_string(pickle.integer(number).value_or(-1)));
      if (own.empty())
        groups.pop_back();
    }
    if (groups.empty())
      fail("invalid-checkpoint",
           "the optimizer numbers parameters, and its "
           "param_groups list none",
           "save the checkpoint again");
    return !groups.empty();
  }

  bool agree(const std::vector<std::string> &group,
             const Parameters &parameters) const {
    if (group.size() != parameters.size())
      return false;
    for (size_t i = 0; i < group.size(); ++i)
      if (auto shape = shapes.find(group[i]);
          shape != shapes.end() && shape->second != parameters[i]->shape)
        return false;
    return true;
  }
  static bool sameShapes(const Parameters &a, const Parameters &b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const plan::Parameter *x, const plan::Parameter *y) {
                        return x->shape == y->shape;
                      });
  }

  const std::string path;
  const plan::Plan &plan;
  DiagnosticEngine &diagnostics;
  std::map<std::string, std::vector<int64_t>> shapes; // of states, by number
  std::vector<std::vector<std::string>> groups;       // numbers
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
namesOfNumbers(const Checkpoint &read, const Part &part, const plan::Plan &plan,
               DiagnosticEngine &diagnostics) {
  return Numbers(read, part, plan, diagnostics).run();
}

} // namespace accel::checkpoint
