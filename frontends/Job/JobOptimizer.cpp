//===- JobOptimizer.cpp - The optimizer of a job.yaml ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Keys, kinds and ranges are those of the optimizer's description
// (runtime/plan/Optimizers.h).
//
//===----------------------------------------------------------------------===//

#include "frontends/Job/JobReader.h"
#include "runtime/plan/Optimizers.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace accel;

namespace {

constexpr double largest = std::numeric_limits<double>::max();

/// Another optimizer that has the hyperparameter, or null.
const plan::OptimizerDescription *ownerOf(const std::string &key) {
  for (const plan::OptimizerDescription &description : plan::optimizers())
    for (const plan::Hyperparameter &parameter : description.hyperparameters)
      if (key == parameter.name)
        return &description;
  return nullptr;
}

} // namespace

void JobReader::readOptimizer(JobConfig &job) {
  std::optional<Fields> fields = top.mapping("optimizer");
  if (!fields)
    return;
  OptimizerConfig &optimizer = job.optimizer;
  fields->text("name", optimizer.name);
  const plan::OptimizerDescription *description =
      plan::findOptimizer(optimizer.name.value);
  if (!description) {
    // Its keys are not known: only the name is wrong.
    refuseOptimizer(*fields, optimizer.name.value);
    return;
  }
  if (const std::string name = description->name; name != "adamw") {
    const Setting<std::string> written = optimizer.name;
    optimizer.setDefaults(*description);
    optimizer.name = written;
  }
  std::vector<std::string> known = {"name", "lr", "weight_decay",
                                    "max_grad_norm", "groups"};
  for (const plan::Hyperparameter &parameter : description->hyperparameters)
    known.emplace_back(parameter.name);
  std::vector<std::string> said = known;
  for (const yaml::Entry &entry : fields->mappingNode().entries) {
    const std::string &key = entry.key->text;
    const plan::OptimizerDescription *owner = ownerOf(key);
    if (!entry.key->isString() || !owner ||
        std::find(known.begin(), known.end(), key) != known.end())
      continue;
    fields->report(Severity::Error, "unknown-key", key.c_str(),
                   "optimizer '" + std::string(description->name) +
                       "' has no '" + key + "'",
                   "'" + key + "' is a key of " + owner->name + "; those of " +
                       description->name + " are " + oneOf(known),
                   true);
    said.push_back(key);
  }
  fields->checkKeys(said);
  fields->number("lr", optimizer.lr, 0, largest);
  fields->number("weight_decay", optimizer.weightDecay, 0, largest);
  fields->number("max_grad_norm", optimizer.maxGradNorm, 0, largest);
  for (const plan::Hyperparameter &parameter : description->hyperparameters)
    readHyperparameter(*fields, parameter, optimizer);
  readGroups(*fields, optimizer);
  if (const char *conflict = description->conflict
                                 ? description->conflict(optimizer.resolved())
                                 : nullptr)
    fields->error("invalid-value", "name",
                  "optimizer '" + std::string(description->name) +
                      "': " + conflict);
}

void JobReader::refuseOptimizer(const Fields &fields, const std::string &name) {
  const std::vector<std::string> names = plan::optimizerNames();
  for (const char *other : {"adam", "adamax", "radam"})
    if (name == other) {
      if (options.accelerate.forPlanning)
        fields.report(Severity::Error, notSupportedCode, "name",
                      "optimizer '" + name + "' is not supported yet, only " +
                          oneOf(names) + (names.size() > 1 ? " are" : " is"));
      return;
    }
  const std::string hint = didYouMean(name, names);
  fields.error("invalid-value", "name",
               "'" + printable(name) + "' is not an optimizer",
               hint.empty() ? "write " + oneOf(names) : hint);
}

void JobReader::readHyperparameter(const Fields &fields,
                                   const plan::Hyperparameter &parameter,
                                   OptimizerConfig &optimizer) {
  using Kind = plan::Hyperparameter::Kind;
  const yaml::Entry *entry = fields.find(parameter.name);
  if (!entry)
    return;
  Setting<std::vector<double>> setting;
  setting.key = fields.keyPath(parameter.name);
  setting.at = fields.locate(parameter.name);
  setting.origin = Origin::Written;
  switch (parameter.kind) {
  case Kind::Flag: {
    Setting<bool> flag;
    fields.flag(parameter.name, flag);
    if (!flag.written())
      return;
    setting.value = {flag.value ? 1.0 : 0.0};
    break;
  }
  case Kind::Number: {
    Setting<double> number;
    fields.number(parameter.name, number, parameter.least, largest);
    if (!number.written())
      return;
    if (number.value >= parameter.below)
      return fields.error("invalid-value", parameter.name,
                          fields.keyPath(parameter.name) + " must be below " +
                              shown(parameter.below) + ", this is " +
                              yaml::shortText(*entry->value));
    setting.value = {number.value};
    break;
  }
  case Kind::Numbers: {
    const yaml::Node &value = *entry->value;
    const size_t count = parameter.standard.size();
    bool good = value.isSequence() && value.items.size() == count;
    for (const yaml::Node *item : value.items) {
      good &=
          (item->kind == yaml::Kind::Float || item->kind == yaml::Kind::Int) &&
          item->number >= parameter.least && item->number < parameter.below;
      setting.value.push_back(item->number);
    }
    if (!good) {
      const bool open = std::isinf(parameter.below);
      fields.error("invalid-value", parameter.name,
                   fields.keyPath(parameter.name) + " must be " +
                       (count == 2 ? "two" : std::to_string(count)) +
                       " numbers" +
                       (open ? " of at least " + shown(parameter.least)
                             : " in [" + shown(parameter.least) + ", " +
                                   shown(parameter.below) + ")") +
                       ", this is " + yaml::shortText(value));
      return;
    }
    break;
  }
  }
  optimizer.values[parameter.name] = std::move(setting);
}

void JobReader::readGroups(const Fields &fields, OptimizerConfig &optimizer) {
  const yaml::Entry *entry = fields.find("groups");
  if (!entry)
    return;
  if (!entry->value->isSequence()) {
    fields.error("invalid-value", "groups",
                 "optimizer.groups must be a list, this is " +
                     std::string(yaml::describe(entry->value->kind)),
                 "write groups: [{match: 'norm', weight_decay: 0.0}]");
    return;
  }
  int index = 0;
  for (const yaml::Node *item : entry->value->items) {
    Fields group(file, *item, "optimizer.groups." + std::to_string(index++),
                 engine);
    if (!item->isMapping()) {
      group.errorHere("invalid-value",
                      "a group must be a mapping, this is " +
                          std::string(yaml::describe(item->kind)),
                      "write {match: 'norm', weight_decay: 0.0}");
      continue;
    }
    group.checkKeys({"match", "lr", "weight_decay"});
    OptimizerGroupConfig result;
    group.regex("match", result.match);
    if (!group.find("match"))
      group.errorHere("missing-key", "a group needs a match",
                      "write match: 'regex over parameter names'");
    group.number("lr", result.lr, 0, largest);
    group.number("weight_decay", result.weightDecay, 0, largest);
    optimizer.groups.push_back(std::move(result));
  }
}
