//===- CompareCommand.cpp - accel-opt compare -----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-opt/Commands.h"
#include "tools/driver/Compare/Effect.h"
#include "tools/driver/Compare/Measured.h"
#include "tools/options/Arguments.h"

#include <cstdio>
#include <unistd.h>

using namespace accel;

/// Of a plan its own figures, of a configuration those that it is planned to
/// have. Nothing after an error, which is reported.
static std::optional<PlanReport> predicted(const std::string &path,
                                           PlanOptions &options,
                                           DiagnosticEngine &engine) {
  if (isPlanFile(path)) {
    const std::optional<Effect> effect = effectOfPlan(path, engine);
    return effect ? std::optional(reportOf(*effect)) : std::nullopt;
  }
  options.config = path;
  options.hasConfig = true;
  CompileResult result = compile(options, engine);
  if (!result.valid || !result.shown)
    return std::nullopt;
  return std::move(result.report);
}

int accel::compareCommand(int argc, char **argv) {
  PlanOptions options;
  Arguments arguments(
      "accel-opt compare", "PLAN|CONFIG RECORD",
      "Puts what is predicted, in a plan.json or for a configuration, beside "
      "what\ntorch recorded of a run of it: the pickle of "
      "torch.cuda.memory._dump_snapshot,\nwhich is read as data and never "
      "run, or the JSON of torch.profiler's\nexport_chrome_trace.");
  addJobOptions(arguments, options);
  arguments.section("output");
  arguments.option("--format", options.format, formatValue(),
                   "text for people, json for programs");
  int exitCode = exitOk;
  if (!arguments.parse(argc, argv, exitCode))
    return exitCode;
  if (arguments.positional.size() != 2)
    return arguments.usageError(
        "expected a plan or configuration and a record, got " +
        std::to_string(arguments.positional.size()) +
        (arguments.positional.size() == 1 ? " file" : " files"));
  DiagnosticEngine engine;
  const std::optional<profile::Profile> measured =
      profile::readProfile(arguments.positional[1], engine);
  std::optional<PlanReport> report;
  if (measured)
    report = predicted(arguments.positional[0], options, engine);
  const bool both = report.has_value();
  if (options.format == ReportFormat::Json)
    std::fputs(renderMeasuredJson(both ? &*report : nullptr,
                                  both ? &*measured : nullptr, engine)
                   .c_str(),
               stdout);
  else if (both)
    std::fputs(renderMeasured(*report, *measured).c_str(), stdout);
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
