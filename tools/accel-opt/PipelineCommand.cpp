//===- PipelineCommand.cpp - accel-opt pipeline ---------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/PipelineSchedules/Verify.h"
#include "tools/accel-opt/Commands.h"
#include "tools/driver/Html/Html.h"
#include "tools/driver/PipelineSchedule/RenderSchedule.h"
#include "tools/options/Arguments.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

using namespace accel;

namespace {

/// Seconds of a pass: what a pipeline looks like depends on their ratios.
ValueKind<double> secondsValue(bool mayBeZero) {
  return {"S", [mayBeZero](const std::string &word, double &value) {
            char *end = nullptr;
            const double read = std::strtod(word.c_str(), &end);
            if (word.empty() || *end || !std::isfinite(read) || read < 0 ||
                read > 1e6 || (read == 0 && !mayBeZero))
              return std::string("expected seconds ") +
                     (mayBeZero ? "from 0" : "above 0") + " to 1000000";
            value = read;
            return std::string();
          }};
}

ValueKind<pipeline::Kind> kindValue() {
  std::vector<std::pair<std::string, pipeline::Kind>> choices;
  for (const pipeline::KindDescription &known : pipeline::kinds())
    choices.emplace_back(known.name, known.kind);
  return choiceValue(choices);
}

} // namespace

int accel::pipelineCommand(int argc, char **argv) {
  constexpr int64_t most = 1 << 16;
  pipeline::Problem problem;
  pipeline::StageCost cost{1, 1, 1};
  int64_t ranks = 4, microBatches = 8, weightBytes = 0;
  std::optional<int64_t> chunks;
  double transfer = 0;
  DrawOptions draw;
  draw.colour = wantsColour(STDOUT_FILENO);
  ReportFormat format = ReportFormat::Text;
  Arguments arguments(
      "accel-opt pipeline", "",
      "Draws a pipeline schedule: what each rank computes when, where it\n"
      "waits, and how many micro-batches' saved tensors it holds at once.",
      "Stages are alike here; seconds and bytes are of one stage and one "
      "micro-batch.");
  arguments.option("--schedule", problem.kind, kindValue(),
                   "order of the passes (default 1f1b)");
  arguments.option("--ranks", ranks, countValue("N", 1, most),
                   "ranks of the pipeline (default 4)");
  arguments.option("--micro-batches", microBatches, countValue("N", 1, most),
                   "micro-batches of a step (default 8)");
  arguments.option("--chunks", chunks, countValue("N", 1, most),
                   "stages on each rank (default: 2 of interleaved-1f1b and "
                   "zb-v, else 1)");
  arguments.option("--forward", cost.forward, secondsValue(false),
                   "seconds of a forward (default 1)");
  arguments.option("--backward-input", cost.backwardInput, secondsValue(false),
                   "seconds of the backward for inputs (default 1)");
  arguments.option("--backward-weight", cost.backwardWeight,
                   secondsValue(false),
                   "seconds of the backward for weights (default 1)");
  arguments.option("--transfer", transfer, secondsValue(true),
                   "seconds from a rank to the next (default 0)");
  arguments.option("--frame-bytes", cost.frameBytes, bytesValue("2GiB", true),
                   "what a forward saves for its backward");
  arguments.option("--weight-bytes", weightBytes, bytesValue("1GiB", true),
                   "of it, what the backward for weights still reads");
  arguments.option("--width", draw.width, countValue("N", 20, 100000),
                   "columns of the drawing (default 120)");
  std::string page;
  arguments.option("--report", page, textValue("FILE.html"),
                   "write the drawing as a page that needs no network");
  bool overwrite = false;
  addOverwrite(arguments, overwrite);
  arguments.option("--format", format, formatValue(),
                   "text for people, json (with each action) for programs");
  int exitCode = 0;
  if (!arguments.parse(argc, argv, exitCode) || !arguments.none(exitCode))
    return exitCode;
  if (overwrite && page.empty())
    return arguments.usageError("--overwrite has no effect without --report");
  if (weightBytes > cost.frameBytes)
    return arguments.usageError(
        "--weight-bytes is a part of --frame-bytes, and larger");
  cost.inputOnlyBytes = cost.frameBytes - weightBytes;
  problem.chunks = static_cast<int>(
      chunks.value_or(pipeline::describe(problem.kind).chunks));
  if (ranks * problem.chunks > most)
    return arguments.usageError("at most " + std::to_string(most) +
                                " stages can be drawn");
  problem.stages = static_cast<int>(ranks) * problem.chunks;
  problem.microBatches = static_cast<int>(microBatches);
  if (std::string wrong = pipeline::check(problem); !wrong.empty())
    return arguments.usageError(wrong);
  const pipeline::Schedule schedule = pipeline::makeSchedule(problem);
  std::string wrong = pipeline::verify(problem, schedule);
  const auto simulation = pipeline::simulate(
      problem, schedule,
      {std::vector<pipeline::StageCost>(size_t(problem.stages), cost),
       transfer});
  if (!wrong.empty() || !simulation) {
    std::fprintf(stderr, "accel-opt pipeline: internal error: %s\n",
                 wrong.empty() ? "the schedule deadlocks" : wrong.c_str());
    return exitInternal;
  }
  const pipeline::SimulatedStep what = {problem, schedule, *simulation, {}};
  if (!page.empty()) {
    DiagnosticEngine engine;
    if (!writePipelineReport({page, overwrite}, what, engine)) {
      std::fputs(renderText(engine).c_str(), stderr);
      return exitInvalid;
    }
  }
  std::fputs((format == ReportFormat::Json ? scheduleJson(what).dump(1) + "\n"
                                           : renderSchedule(what, draw))
                 .c_str(),
             stdout);
  return exitOk;
}
