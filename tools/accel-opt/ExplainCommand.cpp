//===- ExplainCommand.cpp - accel-opt explain -----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Diagnostics/Diagnostics.h"
#include "frontends/Diagnostics/InputFiles.h"
#include "runtime/plan/PlanJson.h"
#include "tools/accel-opt/Commands.h"
#include "tools/driver/Html/Html.h"
#include "tools/driver/Report/Explain.h"
#include "tools/driver/Report/ExplainMemory.h"
#include "tools/driver/Report/RenderPhases.h"
#include "tools/driver/Report/RunLog.h"
#include "tools/options/Arguments.h"

#include <algorithm>
#include <cstdio>
#include <fstream>

using namespace accel;

/// "its decisions are wrap, precision, reshard".
static std::string kindsOf(const plan::Plan &plan) {
  std::vector<std::string> kinds;
  for (const plan::Decision &decision : plan.decisions)
    if (std::find(kinds.begin(), kinds.end(), decision.what) == kinds.end())
      kinds.push_back(decision.what);
  std::string text;
  for (const std::string &kind : kinds)
    text += (text.empty() ? "its decisions are " : ", ") + kind;
  return text;
}

/// A program holds one step's buffers; loading, saving and the rest are in the
/// report of the framework that runs the job.
static int explainPhases(const std::string &path, ReportFormat output) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    std::fprintf(stderr, "accel-opt explain: error: %s: cannot be read\n",
                 path.c_str());
    return exitInvalid;
  }
  const auto root = nlohmann::ordered_json::parse(in, nullptr, false);
  const std::optional<PhaseReport> report = readPhases(root);
  if (!report || report->phases.empty()) {
    std::fprintf(stderr,
                 "accel-opt explain: error: %s: holds no phases of a job; "
                 "write them with accel-opt plan --format json for the "
                 "framework that runs the job\n",
                 path.c_str());
    return exitInvalid;
  }
  if (output == ReportFormat::Json)
    std::printf("%s\n", root["phases"].dump(2).c_str());
  else
    std::fputs(renderPhases(*report).substr(1).c_str(), stdout);
  return exitOk;
}

/// A report of plan, which is no plan.
static bool holdsPhases(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return in && readPhases(nlohmann::ordered_json::parse(in, nullptr, false));
}

/// Predicted beside measured, the page, or both.
static int explainRun(const plan::Plan &plan, const std::string &logPath,
                      const OutputFile &report, ReportFormat output) {
  std::optional<RunLog> log;
  std::string error;
  if (!logPath.empty()) {
    log = readRunLog(logPath, error);
    if (!log) {
      std::fprintf(stderr, "accel-opt explain: error: %s\n",
                   printable(error, 4000).c_str());
      return exitInvalid;
    }
  }
  if (!report.path.empty()) {
    DiagnosticEngine engine;
    if (!writeExplainReport(report, plan, log ? &*log : nullptr, engine)) {
      std::fputs(renderText(engine).c_str(), stderr);
      return exitInvalid;
    }
  }
  if (log && output == ReportFormat::Json)
    std::printf("%s\n", runJson(plan, *log).dump(2).c_str());
  else if (log)
    std::fputs(renderRun(plan, *log).c_str(), stdout);
  return exitOk;
}

int accel::explainCommand(int argc, char **argv) {
  ReportFormat output = ReportFormat::Text;
  std::string log;
  OutputFile report("");
  Arguments arguments(
      "accel-opt explain", "PLAN [WHAT]",
      "Prints the recorded reasons of a plan: all of the job, or those of a "
      "unit, a\nparameter or a kind of decision (wrap, precision, reshard, "
      "...); or who holds\nmemory at the 'peak' or at an instruction ('170', "
      "'last:170'), or the\n'timeline' of all instructions; or, of a report "
      "by plan --format json, all\n'phases' of the job.");
  arguments.option("--format", output, formatValue(),
                   "text for people, json for programs");
  arguments.option("--log", log, textValue("FILE"),
                   "what accel-run --log wrote: predicted beside measured");
  arguments.option("--report", report.path, textValue("FILE.html"),
                   "write the reasons, memory by instruction and the log as a "
                   "page to look at");
  addOverwrite(arguments, report.overwrite);
  int exitCode = 0;
  if (!arguments.parse(argc, argv, exitCode))
    return exitCode;
  if (arguments.positional.empty() || arguments.positional.size() > 2)
    return arguments.usageError("expected PLAN [WHAT]");
  if (report.overwrite && report.path.empty())
    return arguments.usageError("--overwrite has no effect without --report");
  const bool whole = !log.empty() || !report.path.empty();
  if (whole && arguments.positional.size() > 1)
    return arguments.usageError(
        "--log and --report are of the whole plan: leave out '" +
        arguments.positional[1] + "'");
  if (arguments.positional.size() > 1 && arguments.positional[1] == "phases")
    return explainPhases(arguments.positional[0], output);
  plan::Plan plan;
  std::string error;
  noteInputFile(arguments.positional[0]);
  if (!plan::readPlan(arguments.positional[0], plan, error)) {
    std::fprintf(stderr, "accel-opt explain: error: %s\n", error.c_str());
    if (holdsPhases(arguments.positional[0]))
      std::fprintf(stderr,
                   "accel-opt explain: note: it is a report of plan --format "
                   "json, of which 'phases' can be explained; --emit plan "
                   "writes a plan\n");
    return exitInvalid;
  }
  if (whole)
    return explainRun(plan, log, report, output);
  std::string what =
      arguments.positional.size() > 1 ? arguments.positional[1] : "job";
  std::string problem;
  if (auto memory = explainMemory(plan, what, problem)) {
    std::fputs(output == ReportFormat::Json
                   ? (memory->json.dump(2) + "\n").c_str()
                   : memory->text.c_str(),
               stdout);
    return exitOk;
  }
  if (!problem.empty()) {
    std::fprintf(stderr, "accel-opt explain: error: %s\n",
                 printable(problem).c_str());
    return exitInvalid;
  }
  std::optional<Explanation> explanation = explain(plan, what);
  if (!explanation) {
    std::string hint = didYouMean(what, explainableNames(plan));
    if (what == "limit") // a decision of the search
      hint = "what limits a job is found by `accel-opt plan --tune`";
    if (hint.empty())
      hint = kindsOf(plan);
    std::fprintf(stderr,
                 "accel-opt explain: error: the plan has no unit, parameter or "
                 "decision '%s'%s%s\n",
                 printable(what).c_str(), hint.empty() ? "" : "; ",
                 hint.c_str());
    return exitInvalid;
  }
  if (output == ReportFormat::Json)
    std::printf("%s\n", explanation->reasons.dump(2).c_str());
  else
    std::fputs(explanation->text.c_str(), stdout);
  return exitOk;
}
