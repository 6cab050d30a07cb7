//===- Render.h - A plan for people and for programs ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_ACCELOPT_RENDER_H
#define ACCEL_TOOLS_ACCELOPT_RENDER_H

#include "frontends/Diagnostics/Diagnostics.h"
#include "runtime/plan/Plan.h"

#include <optional>
#include <string>

namespace accel {

/// What `plan` prints besides the plan itself.
struct PlanReport {
  std::string title;                  // model name
  std::string strategy;               // "FSDP2", "DDP", ...
  std::optional<int64_t> budgetBytes; // per rank
  std::optional<bool> fits;
  std::optional<double> mfu; // fraction of the target's peak rate
  double planningSeconds = 0;
  std::string mlir; // of the phase that --compile-to stopped at
};

/// "1.23 GiB": three significant digits.
std::string formatBytes(int64_t bytes);
/// "12.3 ms".
std::string formatSeconds(double seconds);

/// Verdict, memory, time, units and schedule.
std::string renderPlanText(const plan::Plan &plan, const PlanReport &report);

/// The object of `--format json`; `plan` is null for invalid input.
std::string renderPlanJson(const plan::Plan *plan, const PlanReport &report,
                           const DiagnosticEngine &engine);

/// The steps of a program, one line each, with repeated layers folded.
std::string renderSchedule(const plan::Plan &plan,
                           const plan::Program &program);

} // namespace accel

#endif // ACCEL_TOOLS_ACCELOPT_RENDER_H
