//===- DiffCommand.cpp - accel-opt diff -----------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-opt/Commands.h"
#include "tools/driver/Compare/Effect.h"
#include "tools/driver/Html/Html.h"
#include "tools/options/Arguments.h"

#include <algorithm>
#include <cstdio>
#include <unistd.h>

using namespace accel;

int accel::diffCommand(int argc, char **argv) {
  PlanOptions options;
  Arguments arguments(
      "accel-opt diff", "A B",
      "Compares two jobs by what they come to: bytes by purpose, seconds, "
      "units,\ndecisions and numerics. A and B are accelerate files, "
      "job.yamls, or plans that\naccel-opt plan wrote; the options below "
      "hold for both.");
  addJobOptions(arguments, options);
  arguments.section("output");
  arguments.option("--format", options.format, formatValue(),
                   "text for people, json for programs");
  arguments.option("--report", options.htmlReport, textValue("FILE.html"),
                   "write the comparison as a page with charts that needs no "
                   "network");
  addOverwrite(arguments, options.overwrite);
  int exitCode = exitOk;
  if (!arguments.parse(argc, argv, exitCode))
    return exitCode;
  if (arguments.positional.size() != 2)
    return arguments.usageError(
        "expected A and B, got " + std::to_string(arguments.positional.size()) +
        (arguments.positional.size() == 1 ? " file" : " files"));
  if (options.overwrite && options.htmlReport.empty())
    return arguments.usageError("--overwrite has no effect without --report");
  const std::string &first = arguments.positional[0],
                    &second = arguments.positional[1];
  const bool planned[] = {isPlanFile(first), isPlanFile(second)};
  const bool json = options.format == ReportFormat::Json;
  for (const auto &option : arguments.table())
    if (planned[0] && planned[1] && option->given &&
        option->name != "--format" && option->name != "--report" &&
        option->name != "--overwrite")
      return arguments.usageError(option->name + " has no effect on plans, "
                                                 "which are compared as they "
                                                 "were made");
  DiagnosticEngine engine;
  auto effectOf = [&](const std::string &path, bool isPlan) {
    return isPlan ? effectOfPlan(path, engine)
                  : effectOfConfig(path, options, engine);
  };
  std::optional<Effect> a = effectOf(first, planned[0]);
  std::optional<Effect> b = effectOf(second, planned[1]);
  const bool both = a && b;
  Comparison comparison;
  if (both)
    comparison = compare(*a, *b);
  const bool written = !both || options.htmlReport.empty() ||
                       writeDiffReport({options.htmlReport, options.overwrite},
                                       *a, *b, comparison, engine);
  if (json) {
    std::fputs(renderComparisonJson(a ? &*a : nullptr, b ? &*b : nullptr,
                                    comparison, engine)
                   .c_str(),
               stdout);
  } else {
    if (both)
      std::fputs(renderComparison(*a, *b, comparison).c_str(), stdout);
    RenderOptions render;
    render.colour = wantsColour(STDERR_FILENO);
    std::fputs(renderText(engine, render).c_str(), stderr);
  }
  if (!both)
    return engine.outcome() == Outcome::NotSupported ? exitNotSupported
           : engine.hasErrors()                      ? exitInvalid
                                                     : exitInternal;
  if (!written)
    return exitInvalid;
  return b->fits.value_or(true) ? exitOk : exitDoesNotFit;
}
