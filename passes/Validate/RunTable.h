//===- RunTable.h - A table of measured runs --------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Reads comma-separated values (RFC 4180) with a header line. The columns are
// those of docs/accuracy.md; others are ignored, and an empty field means that
// the source does not say.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_VALIDATE_RUNTABLE_H
#define ACCEL_PASSES_VALIDATE_RUNTABLE_H

#include "frontends/Diagnostics/Diagnostics.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace accel::validate {

/// One measured run, as its source states it.
struct RunRow {
  int line = 0; // in the file, from 1
  std::string id, model, gpu, framework, sharding, precision, checkpointing,
      compile, attention, source;
  std::optional<double> paramsB; // parameters in 1e9
  std::optional<int64_t> layers, hidden, heads, keyValueHeads, ffn, vocab;
  std::optional<int64_t> sequence, microBatch, globalBatch, gpus;
  std::optional<int64_t> tensorParallel, pipelineParallel, contextParallel;
  // Measured.
  std::optional<double> tokensPerSecondPerGpu, mfuPercent, teraflopsPerGpu,
      peakMemoryGib, stepMilliseconds;
  /// What is wrong with a field of this row, or "".
  std::string problem;
};

/// Reads the whole table; reports file-not-found, missing-column, bad-csv and
/// duplicate columns, and returns nothing after an error. A field that is not
/// the number that its column wants makes a warning and RunRow::problem.
std::optional<std::vector<RunRow>> readRuns(const std::string &path,
                                            DiagnosticEngine &engine);
std::optional<std::vector<RunRow>> parseRuns(const std::string &file,
                                             const std::string &text,
                                             DiagnosticEngine &engine);

} // namespace accel::validate

#endif // ACCEL_PASSES_VALIDATE_RUNTABLE_H
