//===- OptimizersCommand.cpp - accel-opt optimizers -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Diagnostics/Diagnostics.h"
#include "frontends/Job/Fields.h"
#include "runtime/plan/Optimizers.h"
#include "tools/accel-opt/Commands.h"
#include "tools/driver/Options/Arguments.h"

#include <cstdio>
#include <nlohmann/json.hpp>

using namespace accel;
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

Json toJson(const plan::OptimizerDescription &description) {
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

void print(const plan::OptimizerDescription &description) {
  std::printf("%s: %s (%s)\n", description.name, description.summary,
              description.source);
  std::printf("  %s\n", description.executed
                            ? "executed by accel-run, predicted for all"
                            : "predicted for other executors than accel-run");
  std::string keys = "lr: " + shown(description.lr);
  for (const plan::Hyperparameter &parameter : description.hyperparameters)
    keys += std::string(", ") + parameter.name + ": " + numbers(parameter);
  std::printf("  {name: %s, %s, weight_decay: %s}\n", description.name,
              keys.c_str(), shown(description.weightDecay).c_str());
  for (const plan::StateRule &state : description.states) {
    std::string text = dtypeText(state);
    if (state.shape != plan::StateShape::Whole)
      text += std::string(", ") + toString(state.shape);
    if (state.of != plan::StateOf::All)
      text += std::string(", parameters of ") + toString(state.of);
    if (state.needs)
      text += std::string(", with ") + state.needs;
    std::printf("    %-20s %s\n", state.name, text.c_str());
  }
  std::string names;
  for (const std::string &name : transformersNames(description))
    names += (names.empty() ? "" : ", ") + name;
  if (!names.empty())
    std::printf("  --optim: %s\n", names.c_str());
}

} // namespace

int accel::optimizersCommand(int argc, char **argv) {
  std::string format = "text";
  Arguments arguments("optimizers", "",
                      "Lists the optimizers: hyperparameters with their "
                      "defaults, states by dtype and\nshape, and what "
                      "transformers calls them.");
  arguments.addChoice("--format", {"text", "json"}, format,
                      "text for people, json for programs");
  int exitCode = exitOk;
  if (!arguments.parse(argc, argv, exitCode))
    return exitCode;
  if (!arguments.positional.empty()) {
    std::fprintf(stderr, "accel-opt optimizers: error: unexpected '%s'\n",
                 printable(arguments.positional[0]).c_str());
    return exitUsage;
  }
  if (format == "json") {
    Json list = Json::array();
    for (const plan::OptimizerDescription &description : plan::optimizers())
      list.push_back(toJson(description));
    std::printf("%s\n", list.dump(1).c_str());
    return exitOk;
  }
  for (const plan::OptimizerDescription &description : plan::optimizers()) {
    if (&description != &plan::optimizers().front())
      std::printf("\n");
    print(description);
  }
  return exitOk;
}
