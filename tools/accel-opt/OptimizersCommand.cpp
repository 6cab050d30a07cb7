//===- OptimizersCommand.cpp - accel-opt optimizers -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-opt/Commands.h"
#include "tools/driver/Report/OptimizerTables.h"
#include "tools/options/Arguments.h"

#include <cstdio>

using namespace accel;

int accel::optimizersCommand(int argc, char **argv) {
  ReportFormat format = ReportFormat::Text;
  Arguments arguments("accel-opt optimizers", "",
                      "Lists the optimizers: hyperparameters with their "
                      "defaults, states by dtype and\nshape, and what "
                      "transformers calls them.");
  arguments.option("--format", format, formatValue(),
                   "text for people, json for programs");
  int exitCode = exitOk;
  if (!arguments.parse(argc, argv, exitCode))
    return exitCode;
  if (!arguments.none(exitCode))
    return exitCode;
  if (format == ReportFormat::Json) {
    auto list = nlohmann::ordered_json::array();
    for (const plan::OptimizerDescription &description : plan::optimizers())
      list.push_back(optimizerJson(description));
    std::printf("%s\n", list.dump(1).c_str());
    return exitOk;
  }
  for (const plan::OptimizerDescription &description : plan::optimizers()) {
    if (&description != &plan::optimizers().front())
      std::printf("\n");
    std::fputs(renderOptimizer(description).c_str(), stdout);
  }
  return exitOk;
}
