//===- CompareCommand.cpp - accel-opt compare -----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-opt/Commands.h"
#include "tools/driver/Compare/Measured.h"
#include "tools/options/Arguments.h"

#include <cstdio>
#include <unistd.h>

using namespace accel;

int accel::compareCommand(int argc, char **argv) {
  PlanOptions options;
  Arguments arguments(
      "accel-opt compare", "CONFIG RECORD",
      "Puts what is predicted for a configuration beside what torch recorded "
      "of a run\nof it: the pickle of torch.cuda.memory._dump_snapshot, which "
      "is read as data and\nnever run, or the JSON of torch.profiler's "
      "export_chrome_trace.");
  addJobOptions(arguments, options);
  arguments.section("output");
  arguments.option("--format", options.format, formatValue(),
                   "text for people, json for programs");
  int exitCode = exitOk;
  if (!arguments.parse(argc, argv, exitCode))
    return exitCode;
  if (arguments.positional.size() != 2)
    return arguments.usageError(
        "expected CONFIG and RECORD, got " +
        std::to_string(arguments.positional.size()) +
        (arguments.positional.size() == 1 ? " file" : " files"));
  DiagnosticEngine engine;
  const std::optional<profile::Profile> measured =
      profile::readProfile(arguments.positional[1], engine);
  CompileResult result;
  if (measured) {
    options.config = arguments.positional[0];
    options.hasConfig = true;
    result = compile(options, engine);
  }
  const bool both = measured && result.valid && result.shown;
  if (options.format == ReportFormat::Json)
    std::fputs(renderMeasuredJson(both ? &result.report : nullptr,
                                  both ? &*measured : nullptr, engine)
                   .c_str(),
               stdout);
  else if (both)
    std::fputs(renderMeasured(result.report, *measured).c_str(), stdout);
  if (options.format != ReportFormat::Json) {
    RenderOptions render;
    render.colour = wantsColour(STDERR_FILENO);
    std::fputs(renderText(engine, render).c_str(), stderr);
  }
  if (both)
    return exitOk;
  return engine.outcome() == Outcome::NotSupported ? exitNotSupported
         : engine.hasErrors()                      ? exitInvalid
                                                   : exitInternal;
}
