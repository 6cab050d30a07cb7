//===- RunLog.h - What a run of accel-run measured --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_REPORT_RUNLOG_H
#define ACCEL_TOOLS_DRIVER_REPORT_RUNLOG_H

#include "runtime/plan/Plan.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace accel {

/// A line of `accel-run --log`; nothing where the line does not say it (a loss
/// that is no number, a step that was skipped).
struct LoggedStep {
  int64_t step = 0; // from 1
  std::optional<double> loss, evalLoss, stepSeconds, tokensPerSecond;
  std::optional<int64_t> peakBytes; // of tensors, most of all ranks
  int64_t skipped = 0; // steps of the line whose update was left out
};

struct RunLog {
  std::vector<LoggedStep> steps;
  /// Median of `value` over the steps but the first, which makes states and
  /// communicators; of the first alone where there is no other.
  std::optional<double> median(std::optional<double> LoggedStep::*value) const;
  /// Tokens per second of the step of the median seconds: two medians of their
  /// own would not multiply to a step's tokens.
  std::optional<double> tokensPerSecond() const;
  std::optional<int64_t> peakBytes() const;
  int64_t skippedSteps() const;
};

/// Reads such a file; nothing, with `error` as file:line and what is wrong,
/// where it cannot be read or holds no step.
std::optional<RunLog> readRunLog(const std::string &path, std::string &error);

/// Predicted beside measured, for people and for programs.
std::string renderRun(const plan::Plan &plan, const RunLog &log);
nlohmann::ordered_json runJson(const plan::Plan &plan, const RunLog &log);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_REPORT_RUNLOG_H
