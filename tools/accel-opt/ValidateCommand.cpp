//===- ValidateCommand.cpp - accel-opt validate ---------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Validate/Validate.h"
#include "tools/accel-opt/Commands.h"
#include "tools/driver/Html/Html.h"
#include "tools/driver/Inputs/ValidationFolders.h"
#include "tools/driver/Report/Render.h"
#include "tools/driver/Report/RenderValidation.h"
#include "tools/options/Arguments.h"

#include <cstdio>
#include <filesystem>
#include <unistd.h>

using namespace accel;
using namespace accel::validate;

int accel::validateCommand(int argc, char **argv) {
  ReportFormat format = ReportFormat::Text;
  std::string family, folder, modelFolder, file, page;
  Arguments arguments("accel-opt validate", "RUNS.csv",
                      "Predicts each run of a table of measured ones, and "
                      "prints the errors by family.");
  arguments.option("--format", format, formatValue(),
                   "text for people, json for programs");
  arguments.option("--family", family, textValue("NAME"),
                   "only the rows of this family (the letters of their ids)");
  arguments.option("--targets", folder, textValue("DIR"),
                   "files NAME.yaml there come before the shipped targets");
  arguments.option("--models", modelFolder, textValue("DIR"),
                   "config.json of models by name: DIR/NAME/config.json or "
                   "DIR/NAME.json come before the sizes of well-known models");
  arguments.option("--report", page, textValue("FILE.html"),
                   "write the errors as a page with charts that needs no "
                   "network");
  bool overwrite = false;
  addOverwrite(arguments, overwrite);
  int exitCode = 0;
  if (!arguments.parse(argc, argv, exitCode))
    return exitCode;
  if (!arguments.one("RUNS.csv", file, exitCode))
    return exitCode;
  if (overwrite && page.empty())
    return arguments.usageError("--overwrite has no effect without --report");
  for (const auto &[option, path] :
       {std::pair{"--models", modelFolder}, std::pair{"--targets", folder}}) {
    std::error_code ignored;
    if (!path.empty() && !std::filesystem::is_directory(path, ignored))
      return arguments.usageError(std::string(option) +
                                  ": there is no folder '" +
                                  printablePath(path) + "'");
  }
  DiagnosticEngine engine;
  ValidationResult result;
  TargetsByName targets(folder, engine);
  const ConfigsByName models(modelFolder);
  if (std::optional<std::vector<RunRow>> rows = readRuns(file, engine)) {
    result = validateRuns(
        *rows, [&](const std::string &name) { return targets(name); }, family,
        [&](const std::string &name) { return models(name); });
    if (!family.empty() && result.rows.empty())
      engine.warning("no-rows", file,
                     "no row is of the family '" + printable(family) + "'");
    if (!page.empty())
      writeValidationReport({page, overwrite}, file, result,
                            engine); // reports what fails
  }
  if (format == ReportFormat::Json) {
    std::fputs(renderValidationJson(result, engine).c_str(), stdout);
  } else {
    if (!result.rows.empty())
      std::fputs(renderValidation(result).c_str(), stdout);
    RenderOptions render;
    render.colour = wantsColour(STDERR_FILENO);
    std::fputs(renderText(engine, render).c_str(), stderr);
  }
  return engine.hasErrors() ? static_cast<int>(exitInvalid) : exitOk;
}
