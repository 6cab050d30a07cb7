//===- LintCommand.cpp - accel-opt lint -----------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Job/JobConfig.h"
#include "tools/accel-opt/Arguments.h"
#include "tools/accel-opt/Commands.h"

#include <cstdio>
#include <unistd.h>

using namespace accel;

int accel::lintCommand(int argc, char **argv) {
  LoadOptions options;
  options.accelerate.forPlanning = false;
  std::string output = "text";
  int64_t maxErrors = 0;
  Arguments arguments("lint", "CONFIG.yaml",
                      "Prints what accelerate would reject, ignore or take "
                      "otherwise than meant.");
  arguments.addText("--accelerate-version", "V", options.accelerate.version,
                    "judge as this version of accelerate (default 1.15.0)");
  arguments.addChoice("--format", {"text", "json"}, output,
                      "text for people, json for programs");
  arguments.addCount("--max-errors", "N", maxErrors, "stop listing after N");
  int exitCode = 0;
  if (!arguments.parse(argc, argv, exitCode))
    return exitCode;
  if (arguments.positional.size() != 1) {
    std::fprintf(stderr,
                 "accel-opt lint: error: expected one CONFIG.yaml, got "
                 "%zu\n",
                 arguments.positional.size());
    return exitUsage;
  }
  DiagnosticEngine engine;
  engine.setMaxErrors(static_cast<size_t>(maxErrors));
  LoadedConfig loaded = loadConfig(arguments.positional[0], options, engine);
  if (output == "json") {
    std::printf("{\"diagnostics\": %s}\n", renderJson(engine).c_str());
  } else {
    RenderOptions render;
    render.colour = wantsColour(STDOUT_FILENO);
    std::fputs(renderText(engine, render).c_str(), stdout);
    if (engine.all().empty())
      std::printf("%s: nothing to report\n", arguments.positional[0].c_str());
  }
  return static_cast<int>(loaded.outcome);
}
