//===- Render.h - A plan for people and for programs ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_REPORT_RENDER_H
#define ACCEL_TOOLS_DRIVER_REPORT_RENDER_H

#include "frontends/Diagnostics/Diagnostics.h"
#include "runtime/plan/Plan.h"
#include "tools/driver/Session/PlanReport.h"

#include <string>

namespace accel {

/// What the text of a plan shows besides the verdict, memory, time and advice.
struct PlanTextOptions {
  bool units = false, schedule = false;
  bool colour = false;
};
std::string renderPlanText(const plan::Plan &plan, const PlanReport &report,
                           const PlanTextOptions &options);

/// "2 x 4096 tokens per rank, accumulated 8 times"; where ranks compute a
/// sample together, per group of them.
std::string describeBatch(const plan::Plan &plan);

/// What was understood, in a line: the model, the framework, the ranks, the
/// precision and the batch.
std::string renderJobLine(const plan::Plan &plan, const PlanReport &report);

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
