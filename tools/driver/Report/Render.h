//===- Render.h - A plan for people and for programs ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_REPORT_RENDER_H
#define ACCEL_TOOLS_DRIVER_REPORT_RENDER_H

#include "frontends/Diagnostics/Diagnostics.h"
#include "runtime/plan/Plan.h"
#include "tools/driver/Advice/Advice.h"
#include "tools/driver/Report/RenderPhases.h"

#include <optional>
#include <string>

namespace accel {

/// What `plan` prints besides the plan itself.
struct PlanReport {
  std::string title;                              // model name
  std::string strategy;                           // "FSDP2", "DDP", ...
  ExecutorKind executor = ExecutorKind::AccelRun; // whose figures these are
  StepPrediction prediction;                      // as configured
  bool hasTime = false;
  plan::DType compute = plan::DType::F32, reduce = plan::DType::F32;
  std::optional<int64_t> budgetBytes; // per rank
  std::optional<int64_t> hostBytes;   // of the host, where the target says it
  std::optional<bool> fits;
  std::optional<double> mfu; // fraction of the target's peak rate
  /// Of the rank with the smallest shards, where it differs.
  std::optional<StepPrediction> smallestRank;
  PhaseReport phases;
  double planningSeconds = 0;
  std::string mlir;             // of the phase that --compile-to stopped at
  std::optional<Advice> advice; // not of a compiled module
};

/// "1.23 GiB": three significant digits.
std::string formatBytes(int64_t bytes);
/// "12.3 ms".
std::string formatSeconds(double seconds);

/// "-1.2 GiB", "+12.3 ms".
std::string formatBytesChange(int64_t bytes);
std::string formatSecondsChange(double seconds);
/// A module path with `*` for numbers: "model.layers.*.mlp".
std::string generalised(const std::string &path);
/// 0.4072 as "40.7 %".
std::string formatPercent(double share);
/// "1,234,567".
std::string formatGrouped(double value);
std::string padRight(std::string text, size_t width);
std::string padLeft(std::string text, size_t width);

/// What the text of a plan shows besides the verdict, memory, time and advice.
struct PlanTextOptions {
  bool units = false, schedule = false;
  bool colour = false;
};
std::string renderPlanText(const plan::Plan &plan, const PlanReport &report,
                           const PlanTextOptions &options);

/// Whether it fits, by how much, and the smallest change that makes it fit or
/// the one that is fastest and still fits.
std::string renderVerdict(const plan::Plan &plan, const PlanReport &report,
                          bool colour);

/// What would help, what --tune and --max-batch found; each section ends with
/// a line break.
std::string renderAdvice(const PlanReport &report);

/// The object of `--format json`; `plan` is null for invalid input.
std::string renderPlanJson(const plan::Plan *plan, const PlanReport &report,
                           const DiagnosticEngine &engine);

/// The steps of a program, one line each, with repeated layers folded.
std::string renderSchedule(const plan::Plan &plan,
                           const plan::Program &program);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_REPORT_RENDER_H
