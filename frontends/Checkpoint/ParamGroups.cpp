//===- ParamGroups.cpp - param_groups of a saved optimizer ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/ParamGroups.h"
#include "frontends/Checkpoint/ConvertedFloats.h"
#include "frontends/Checkpoint/PieceReader.h"
#include "frontends/Checkpoint/TorchSave.h"
#include "runtime/plan/Optimizers.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>

namespace accel::checkpoint {

namespace {

std::optional<double> numberAt(const Pickle &pickle, ValueId id) {
  switch (pickle.at(id).kind) {
  case Pickle::Kind::Float:
    return pickle.at(id).real;
  case Pickle::Kind::Int:
  case Pickle::Kind::Bool:
    return double(pickle.at(id).number);
  default:
    return std::nullopt;
  }
}

/// A name, or a number as torch's optimizers give their parameters.
std::string keyAt(const Pickle &pickle, ValueId id) {
  if (const auto text = pickle.text(id))
    return std::string(*text);
  return std::to_string(pickle.integer(id).value_or(-1));
}

/// Empty where it is no number and no tuple of them.
std::vector<double> numbersAt(const Pickle &pickle, ValueId id) {
  if (const auto number = numberAt(pickle, id))
    return {*number};
  std::vector<double> numbers;
  if (pickle.is(id, Pickle::Kind::Tuple) || pickle.is(id, Pickle::Kind::List))
    for (ValueId item : pickle.at(id).items) {
      const auto number = numberAt(pickle, item);
      if (!number)
        return {};
      numbers.push_back(*number);
    }
  return numbers;
}

std::vector<std::string> keysAt(const Pickle &pickle, ValueId id) {
  std::vector<std::string> keys;
  if (pickle.is(id, Pickle::Kind::List))
    for (ValueId item : pickle.at(id).items)
      keys.push_back(keyAt(pickle, item));
  return keys;
}

ParamGroup groupAt(const Pickle &pickle, ValueId id) {
  ParamGroup group;
  const auto entries = pickle.entries(id);
  for (size_t i = 0; i + 1 < entries.size(); i += 2) {
    const std::string key = keyAt(pickle, entries[i]);
    if (key == "params")
      group.params = keysAt(pickle, entries[i + 1]);
    else if (key == "param_names")
      group.names = keysAt(pickle, entries[i + 1]);
    else if (auto text = pickle.text(entries[i + 1]))
      group.texts[key] = *text;
    else if (auto numbers = numbersAt(pickle, entries[i + 1]); !numbers.empty())
      group.values[key] = std::move(numbers);
  }
  return group;
}

/// JSON has no text of those that are not finite.
std::string textOf(double number) {
  if (std::isnan(number))
    return "nan";
  if (std::isinf(number))
    return number < 0 ? "-inf" : "inf";
  return nlohmann::json(number).dump();
}

std::string textOf(const std::vector<double> &numbers, bool isFlag = false) {
  if (isFlag)
    return numbers[0] != 0 ? "true" : "false";
  std::string text;
  for (double number : numbers)
    text += (text.empty() ? "" : ",") + textOf(number);
  return numbers.size() == 1 ? text : "[" + text + "]";
}

} // namespace

std::optional<double> ParamGroup::value(const std::string &key) const {
  const auto found = values.find(key);
  if (found == values.end() || found->second.size() != 1)
    return std::nullopt;
  return found->second[0];
}

std::set<std::string> ParamGroup::hyperparameters() const {
  std::set<std::string> all;
  for (const auto &[name, numbers] : values)
    all.insert(name);
  return all;
}

std::optional<double> ParamGroup::baseRate() const {
  const auto base = value("initial_lr"); // of torch's schedulers
  return base ? base : value("lr");
}

std::vector<ParamGroup> paramGroupsAt(const Pickle &pickle, ValueId optimizer) {
  std::vector<ParamGroup> groups;
  const auto list = pickle.field(optimizer, "param_groups");
  size_t index = 0;
  for (ValueId id : list ? pickle.at(*list).items : std::vector<ValueId>()) {
    ParamGroup group = groupAt(pickle, id);
    group.index = index++;
    if (!group.params.empty())
      groups.push_back(std::move(group));
  }
  return groups;
}

bool takeTensors(const Part &part, const std::vector<std::string> &inside,
                 std::vector<ParamGroup> &groups,
                 DiagnosticEngine &diagnostics) {
  std::string prefix; // of names, which count the items of lists too
  for (const std::string &key : inside)
    prefix += key + ".";
  prefix += "param_groups.";
  PieceReader reader(diagnostics);
  for (const Tensor &tensor : part.tensors)
    for (ParamGroup &group : groups) {
      if (tensor.path.empty() || !isConvertedFloat(tensor.dtype) ||
          tensor.bytes != elementBytes(tensor.dtype) ||
          tensor.name !=
              prefix + std::to_string(group.index) + "." + tensor.path.back())
        continue;
      const auto number = reader.number(tensor);
      if (!number)
        return false;
      group.values[tensor.path.back()] = {*number};
    }
  return true;
}

std::map<std::string, double> stepsAt(const Pickle &pickle, ValueId optimizer) {
  std::map<std::string, double> steps;
  const auto state = pickle.field(optimizer, "state");
  const auto entries =
      state ? pickle.entries(*state) : std::span<const ValueId>();
  for (size_t i = 0; i + 1 < entries.size(); i += 2)
    if (const auto step = pickle.field(entries[i + 1], "step"))
      if (const auto number = numberAt(pickle, *step))
        steps[keyAt(pickle, entries[i])] = *number;
  return steps;
}

std::optional<SavedOptimizer>
readSavedOptimizer(const std::string &path,
                   const std::vector<std::string> &inside,
                   DiagnosticEngine &diagnostics) {
  SavedOptimizer saved;
  const bool good =
      takeSavedPickle(path, diagnostics, [&](const Pickle &pickle) {
        std::optional<ValueId> root = pickle.root();
        for (const std::string &key : inside)
          if (root)
            root = pickle.field(*root, key);
        // The one optimizer of a list, as Lightning saves it.
        if (root && pickle.is(*root, Pickle::Kind::List) &&
            pickle.at(*root).items.size() == 1)
          root = pickle.at(*root).items[0];
        if (!root)
          return true;
        saved.groups = paramGroupsAt(pickle, *root);
        saved.steps = stepsAt(pickle, *root);
        return true;
      });
  if (!good)
    return std::nullopt;
  return saved;
}

/// That torch's, apex' and transformers' former AdamW have of these names.
static constexpr std::array adamwsOwn = {"amsgrad", "bias_correction",
                                         "correct_bias"};
/// Of LAMB and LARS, as timm, apex, DeepSpeed and Lightning Bolts name them:
/// each parameter's update is scaled by the norm of its weights.
static constexpr std::array scaledByNorms = {
    "grad_averaging", "trust_clip", "trust_coeff", "trust_coefficient",
    "always_adapt",   "max_coeff",  "min_coeff"};

/// False; `what` it has that makes another update.
static bool refuseUpdate(const std::string &what, const std::string &path,
                         DiagnosticEngine &diagnostics) {
  diagnostics.error("not-supported", path,
                    "the optimizer has " + what +
                        ", which is another update than any plan's",
                    "begin a new run from the weights (accel-opt checkpoint "
                    "merge)");
  return false;
}

bool checkAdam(const std::set<std::string> &hyperparameters,
               const std::set<std::string> &kinds, const std::string &path,
               DiagnosticEngine &diagnostics) {
  if (kinds != std::set<std::string>{"exp_avg", "exp_avg_sq"} ||
      std::any_of(adamwsOwn.begin(), adamwsOwn.end(), [&](const char *name) {
        return hyperparameters.count(name) > 0;
      }))
    return true;
  return refuseUpdate("states of Adam and no 'amsgrad' in its groups (as "
                      "RAdam)",
                      path, diagnostics);
}

bool checkScaled(const std::set<std::string> &hyperparameters,
                 const std::string &path, DiagnosticEngine &diagnostics) {
  for (const char *name : scaledByNorms)
    if (hyperparameters.count(name))
      return refuseUpdate("'" + std::string(name) +
                              "' in its groups (as LAMB and LARS)",
                          path, diagnostics);
  return true;
}

bool checkUpdates(const std::vector<ParamGroup> &groups,
                  const std::string &path, DiagnosticEngine &diagnostics) {
  auto fail = [&](const std::string &what) {
    return refuseUpdate(what, path, diagnostics);
  };
  for (const ParamGroup &group : groups) {
    // The latter two are timm's.
    for (const char *flag :
         {"amsgrad", "maximize", "caution", "corrected_weight_decay"})
      if (group.value(flag).value_or(0) != 0)
        return fail(std::string(flag) + " set");
    // apex' AdamW and transformers' former one.
    for (const char *flag : {"bias_correction", "correct_bias"})
      if (group.value(flag).value_or(1) == 0)
        return fail("no correction of its averages (" + std::string(flag) +
                    " is false)");
    // torch.optim.Adam; without a decay it is AdamW.
    if (group.value("decoupled_weight_decay").value_or(1) == 0 &&
        group.value("weight_decay").value_or(0) != 0)
      return fail("the weight decay of Adam (decoupled_weight_decay is false)");
    // torch.optim.Muon; "original" is what none is.
    if (auto rates = group.texts.find("adjust_lr_fn");
        rates != group.texts.end() && rates->second != "original")
      return fail("the rates of '" + printable(rates->second) +
                  "' (adjust_lr_fn)");
    if (auto found = group.values.find("ns_coefficients");
        found != group.values.end() &&
        !std::equal(found->second.begin(), found->second.end(),
                    plan::newtonSchulz.begin(), plan::newtonSchulz.end(),
                    sameHyperparameter))
      return fail("ns_coefficients " + textOf(found->second));
  }
  return true;
}

bool sameHyperparameter(double a, double b) {
  return a == b ||
         (std::isfinite(a) && std::isfinite(b) &&
          std::abs(a - b) <= 1e-6 * std::max(std::abs(a), std::abs(b)));
}

/// Of Muon, whose groups have `momentum`, and those of AdamW beside it none.
static constexpr const char *adamwEps = "adamw_eps";

std::vector<Replaced> replacedBy(const ParamGroup &saved,
                                 const plan::Optimizer &plan, size_t index) {
  std::vector<Replaced> replaced;
  auto compare = [&](const char *name, const std::vector<double> &had,
                     const std::vector<double> &has, bool isFlag = false) {
    if (had.size() == has.size() &&
        !std::equal(had.begin(), had.end(), has.begin(), sameHyperparameter))
      replaced.push_back({name, textOf(had, isFlag), textOf(has, isFlag)});
  };
  if (const auto rate = saved.baseRate())
    compare("lr", {*rate}, {plan.groups[index].lr});
  if (const auto decay = saved.value("weight_decay"))
    compare("weight_decay", {*decay}, {plan.groups[index].weightDecay});
  // Muon's plan has both eps: AdamW's under a name of its own.
  const bool adamw =
      !plan::valueOf(plan, adamwEps).empty() && !saved.values.count("momentum");
  if (const auto *description = plan::findOptimizer(plan.name))
    for (const plan::Hyperparameter &each : description->hyperparameters) {
      const std::string_view name = each.name;
      if (adamw && name == "eps")
        continue;
      if (auto found =
              saved.values.find(adamw && name == adamwEps ? "eps" : each.name);
          found != saved.values.end())
        compare(each.name, found->second, plan::valueOf(plan, each.name),
                each.kind == plan::Hyperparameter::Kind::Flag);
    }
  return replaced;
}

} // namespace accel::checkpoint
