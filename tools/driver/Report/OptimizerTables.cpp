//===- OptimizerTables.cpp - What optimizers hold -------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Report/OptimizerTables.h"

#include "frontends/Job/Fields.h"
#include "tools/driver/Text/Format.h"

namespace accel {

using Json = nlohmann::ordered_json;

namespace {

const char *toString(plan::StateShape shape) {
  switch (shape) {
  case plan::StateShape::Whole:
    return "parameter";
  case plan::StateShape::Rows:
    return "rows";
  case plan::StateShape::Columns:
    return "columns";
  case plan::StateShape::PerBlock:
    return "blocks of 256";
  case plan::StateShape::Double:
    return "twice the parameter";
  case plan::StateShape::DoubleBlocks:
    return "twice blocks of 256";
  case plan::StateShape::Halves:
    return "two elements a byte";
  case plan::StateShape::Table256:
    return "a table of 256";
  case plan::StateShape::Table16:
    return "a table of 16";
  }
  return "";
}

const char *toString(plan::StateOf of) {
  switch (of) {
  case plan::StateOf::All:
    return "all";
  case plan::StateOf::Matrices:
    return "two dimensions or more";
  case plan::StateOf::Vectors:
    return "fewer than two dimensions";
  case plan::StateOf::TwoDimensional:
    return "two dimensions";
  case plan::StateOf::NotTwoDimensional:
    return "other than two dimensions";
  case plan::StateOf::Large:
    return "4096 elements or more";
  case plan::StateOf::Small:
    return "fewer than 4096 elements";
  case plan::StateOf::Blocked:
    return "4096 elements or more in whole blocks of 256";
  case plan::StateOf::Apart:
    return "fewer than 4096 elements or with a part of a block";
  }
  return "";
}

const char *toString(plan::UpdateKernel kernel) {
  switch (kernel) {
  case plan::UpdateKernel::Fused:
    return "fused";
  case plan::UpdateKernel::Foreach:
    return "foreach";
  case plan::UpdateKernel::ForLoop:
    return "for-loop";
  }
  return "";
}

std::string dtypeText(const plan::StateRule &state) {
  return state.dtype ? plan::toString(*state.dtype) : "parameter";
}

std::string numbers(const plan::Hyperparameter &parameter) {
  if (parameter.kind == plan::Hyperparameter::Kind::Flag)
    return parameter.standard.front() != 0 ? "true" : "false";
  std::string text;
  for (double number : parameter.standard)
    text += (text.empty() ? "" : ", ") + shown(number);
  return parameter.standard.size() > 1 ? "[" + text + "]" : text;
}

std::vector<std::string>
transformersNames(const plan::OptimizerDescription &description) {
  std::vector<std::string> names;
  for (const plan::TransformersOptimizer &known :
       plan::transformersOptimizers())
    if (known.optimizer &&
        std::string_view(known.optimizer) == description.name)
      names.emplace_back(known.name);
  return names;
}

} // namespace

Json optimizerJson(const plan::OptimizerDescription &description) {
  Json parameters = Json::object(), states = Json::array(),
       kernels = Json::array();
  parameters["lr"] = description.lr;
  for (const plan::Hyperparameter &parameter : description.hyperparameters) {
    Json value = parameter.standard;
    if (parameter.kind == plan::Hyperparameter::Kind::Number)
      value = parameter.standard.front();
    else if (parameter.kind == plan::Hyperparameter::Kind::Flag)
      value = parameter.standard.front() != 0;
    parameters[parameter.name] = value;
  }
  parameters["weight_decay"] = description.weightDecay;
  for (const plan::StateRule &state : description.states) {
    Json json = {{"name", state.name},
                 {"dtype", dtypeText(state)},
                 {"shape", toString(state.shape)},
                 {"of", toString(state.of)}};
    if (state.needs)
      json["needs"] = state.needs;
    states.push_back(json);
  }
  for (plan::UpdateKernel kernel : description.kernels)
    kernels.push_back(toString(kernel));
  return {{"name", description.name},
          {"summary", description.summary},
          {"source", description.source},
          {"executed", description.executed},
          {"defaults", parameters},
          {"states", states},
          {"kernels", kernels},
          {"transformers", transformersNames(description)}};
}

std::string renderOptimizer(const plan::OptimizerDescription &description) {
  std::string text = std::string(description.name) + ": " +
                     description.summary + " (" + description.source + ")\n";
  text += description.executed
              ? "  executed by accel-run, predicted for all\n"
              : "  predicted for other executors than accel-run\n";
  text += std::string("  {name: ") + description.name +
          ", lr: " + shown(description.lr);
  for (const plan::Hyperparameter &parameter : description.hyperparameters)
    text += std::string(", ") + parameter.name + ": " + numbers(parameter);
  text += ", weight_decay: " + shown(description.weightDecay) + "}\n";
  for (const plan::StateRule &state : description.states) {
    text += "    " + padRight(state.name, 20) + " " + dtypeText(state);
    if (state.shape != plan::StateShape::Whole)
      text += std::string(", ") + toString(state.shape);
    if (state.of != plan::StateOf::All)
      text += std::string(", parameters of ") + toString(state.of);
    if (state.needs)
      text += std::string(", with ") + state.needs;
    text += "\n";
  }
  std::string names;
  for (const std::string &name : transformersNames(description))
    names += (names.empty() ? "" : ", ") + name;
  return names.empty() ? text : text + "  --optim: " + names + "\n";
}

} // namespace accel
