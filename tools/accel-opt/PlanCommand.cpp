//===- PlanCommand.cpp - accel-opt plan -----------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-opt/Commands.h"
#include "tools/driver/Emit/Outputs.h"
#include "tools/driver/Html/Html.h"
#include "tools/driver/Options/FirstLine.h"
#include "tools/driver/Options/PlanOptions.h"
#include "tools/driver/Report/Render.h"
#include "tools/driver/Session/Compile.h"
#include "tools/options/ExitCode.h"

#include <chrono>
#include <cstdio>
#include <unistd.h>

using namespace accel;

namespace {

class PlanCommand {
public:
  int run(int argc, char **argv) {
    start = std::chrono::steady_clock::now();
    int exitCode = exitOk;
    if (!parsePlanOptions(argc, argv, options, exitCode))
      return exitCode;
    if (options.hasConfig && !options.compileFrom) {
      const FirstLine first = readFirstLine(options.config, engine);
      if (options.model.empty())
        options.model = first.model;
      if (options.target.empty())
        options.target = first.target;
    }
    CompileResult result = compile(options, engine);
    if (!result.valid)
      return finish(nullptr, result.report,
                    engine.outcome() == Outcome::NotSupported ? exitNotSupported
                    : engine.hasErrors()                      ? exitInvalid
                                                              : exitInternal);
    if (!writeOutputs(options, result, engine) ||
        (!options.htmlReport.empty() && !writeReport(options, result, engine)))
      return finish(nullptr, result.report, exitInvalid);
    bool fits = result.report.fits.value_or(true);
    if (const auto &advice = result.report.advice) {
      // What is asked for is then not the configuration as it stands.
      if (advice->tuned)
        fits = advice->tuned->result.best.has_value();
      if (advice->maxBatch)
        fits = advice->maxBatch->fits > 0;
    }
    return finish(result.shown ? &*result.shown : nullptr, result.report,
                  fits ? exitOk : exitDoesNotFit);
  }

private:
  int finish(const plan::Plan *plan, PlanReport report, int exitCode) {
    report.planningSeconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
    if (options.format == ReportFormat::Json) {
      std::fputs(renderPlanJson(plan, report, engine).c_str(), stdout);
      return exitCode;
    }
    if (options.compileTo && exitCode == exitOk) {
      if (options.output.empty())
        std::fputs(report.mlir.c_str(), stdout);
    } else if (plan) {
      const bool toError = options.output == "-";
      PlanTextOptions text{
          options.showUnits, options.showSchedule,
          wantsColour(toError ? STDERR_FILENO : STDOUT_FILENO)};
      std::fputs(renderPlanText(*plan, report, text).c_str(),
                 toError ? stderr : stdout);
    }
    RenderOptions render;
    bool toOut = !options.compileTo && options.output != "-";
    render.colour = wantsColour(toOut ? STDOUT_FILENO : STDERR_FILENO);
    std::string text = renderText(engine, render);
    if (!text.empty()) {
      std::fputs(plan && toOut ? "\n" : "", stdout);
      std::fflush(stdout);
      std::fputs(text.c_str(), toOut ? stdout : stderr);
    }
    if (exitCode == exitInternal)
      std::fprintf(stderr,
                   "accel-opt plan: internal error; reproduce it with the same "
                   "command and --dump-phases DIR\n");
    return exitCode;
  }

  std::chrono::steady_clock::time_point start;
  PlanOptions options;
  DiagnosticEngine engine;
};

} // namespace

int accel::planCommand(int argc, char **argv) {
  return PlanCommand().run(argc, argv);
}
