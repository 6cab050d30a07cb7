//===- Validate.h - Predictions beside measured runs ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_VALIDATE_VALIDATE_H
#define ACCEL_PASSES_VALIDATE_VALIDATE_H

#include "passes/Cost/ErrorBars.h"
#include "passes/FrameworkSteps/StepEvaluator.h"
#include "passes/Validate/RunDescription.h"

#include <functional>

namespace accel::validate {

/// What one run was predicted to hold and to take, beside what was measured.
struct RowResult {
  RunRow row;
  Run run;
  TrainedKind kind = TrainedKind::Full;
  std::string skipped; // why it is not predicted, or ""
  StepPrediction prediction;
  double stepSeconds = 0, tokensPerSecondPerDevice = 0;
  bool fits = false;
  /// Of the kind that the memory column counts.
  int64_t predictedBytes = 0;
  std::optional<double> measuredBytes;
  /// The allocator's segments by replay against what was measured, where that
  /// is segments too.
  std::optional<double> replayedError;
  /// Predicted over measured, minus one; none where one of them is missing.
  std::optional<double> memoryError, speedError;
  std::optional<double> measuredTokensPerSecond; // also from the step's time
};

/// Of absolute errors.
struct ErrorSummary {
  int count = 0;
  double mean = 0, median = 0, most = 0;
  double bias = 0; // mean of the signed errors
};
ErrorSummary summarize(std::vector<double> errors);

/// Spearman's: ties get the mean of their ranks; 0, which stands for none, for
/// fewer than 3 pairs or where all are equal.
double rankCorrelation(const std::vector<double> &a,
                       const std::vector<double> &b);

struct FamilyResult {
  std::string name;
  std::string frameworks; // of its rows
  int rows = 0, modelled = 0;
  ErrorSummary memory, speed;
  ErrorSummary replayed;      // memory by replay, of rows that report segments
  double rankCorrelation = 0; // of tokens/s
  int doNotFit = 0;           // measured runs that were predicted not to fit
};

struct ValidationResult {
  std::vector<RowResult> rows;
  std::vector<FamilyResult> families; // in the order of the table
  FamilyResult all;
};

/// Gives a target by the name of a shipped one; null where it cannot.
using TargetSource = std::function<const Target *(const std::string &)>;

RowResult predictRow(const RunRow &row, const TargetSource &targets,
                     const ModelSource &models = nullptr);

/// Predicts every row, of one family only if `family` is not empty.
ValidationResult validateRuns(const std::vector<RunRow> &rows,
                              const TargetSource &targets,
                              const std::string &family = "",
                              const ModelSource &models = nullptr);

} // namespace accel::validate

#endif // ACCEL_PASSES_VALIDATE_VALIDATE_H
