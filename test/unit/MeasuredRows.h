//===- MeasuredRows.h - Rows of measured runs for tests ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TEST_UNIT_MEASUREDROWS_H
#define ACCEL_TEST_UNIT_MEASUREDROWS_H

#include "passes/Targets/Target.h"
#include "passes/Validate/RunTable.h"

#include <map>

namespace accel::validate {

/// A row that is modelled, to be changed.
inline RunRow plainRow() {
  RunRow row;
  row.id = "t1";
  row.model = "llama3.1-8b";
  row.gpu = "H100-80GB";
  row.framework = "torchtitan";
  row.sharding = "FSDP2";
  row.precision = "bf16";
  row.source = "benchmarks 2025";
  row.gpus = 8;
  row.sequence = 8192;
  row.microBatch = 1;
  row.globalBatch = 8;
  return row;
}

/// A shipped target, read once.
inline const Target *shipped(const std::string &name) {
  static std::map<std::string, Target> known;
  DiagnosticEngine engine;
  auto [at, fresh] = known.try_emplace(name);
  if (fresh)
    at->second = loadTarget(name, engine).value();
  return &at->second;
}

} // namespace accel::validate

#endif // ACCEL_TEST_UNIT_MEASUREDROWS_H
