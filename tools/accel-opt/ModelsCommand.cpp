//===- ModelsCommand.cpp - accel-opt models -------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/HuggingFace/HubCache.h"
#include "frontends/HuggingFace/PublishedModels.h"
#include "tools/accel-opt/Commands.h"
#include "tools/driver/Estimate/Estimate.h"
#include "tools/driver/Text/Format.h"
#include "tools/options/Arguments.h"

#include <algorithm>
#include <cstdio>
#include <unistd.h>

using namespace accel;
using huggingface::PublishedModel;
using Json = nlohmann::ordered_json;

static void list(const std::vector<PublishedModel> &models) {
  size_t width = 0;
  for (const PublishedModel &model : models)
    width = std::max(width, model.name.size());
  for (const PublishedModel &model : models)
    std::printf("%-*s  %8s  %s\n", static_cast<int>(width), model.name.c_str(),
                formatCount(static_cast<double>(model.parameters)).c_str(),
                model.modelType.c_str());
}

int accel::modelsCommand(int argc, char **argv) {
  ReportFormat format = ReportFormat::Text;
  Arguments arguments("accel-opt models", "[NAME]",
                      "Lists the models that --model takes by name, without a "
                      "file: parameters and\nmodel_type; or prints the "
                      "config.json of one.");
  arguments.option("--format", format, formatValue(),
                   "text for people, json for programs");
  int exitCode = exitOk;
  if (!arguments.parse(argc, argv, exitCode))
    return exitCode;
  if (arguments.positional.size() > 1)
    return arguments.usageError("expected one NAME or none, got " +
                                std::to_string(arguments.positional.size()));
  DiagnosticEngine engine;
  if (!arguments.positional.empty()) {
    const std::string &name = arguments.positional[0];
    if (const auto model = huggingface::publishedModel(name)) {
      std::printf("%s\n", model->config.c_str());
      return exitOk;
    }
    engine.error("no-model", name, "no published model has this name",
                 huggingface::hubHint(name));
  } else if (format == ReportFormat::Text) {
    list(huggingface::publishedModels());
    return exitOk;
  }
  if (format == ReportFormat::Json) {
    Json models = Json::array();
    if (arguments.positional.empty())
      for (const PublishedModel &model : huggingface::publishedModels())
        models.push_back({{"name", model.name},
                          {"parameters", model.parameters},
                          {"model_type", model.modelType}});
    std::printf("{\"models\": %s,\n\"diagnostics\": %s}\n",
                models.dump(1).c_str(), renderJson(engine).c_str());
  } else {
    RenderOptions render;
    render.colour = wantsColour(STDERR_FILENO);
    std::fputs(renderText(engine, render).c_str(), stderr);
  }
  return static_cast<int>(engine.outcome());
}
