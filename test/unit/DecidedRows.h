//===- DecidedRows.h - Rows as decided steps, for tests ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TEST_UNIT_DECIDEDROWS_H
#define ACCEL_TEST_UNIT_DECIDEDROWS_H

#include "passes/Pipeline/Phases.h"
#include "passes/Validate/RunJob.h"
#include "test/unit/MeasuredRows.h"

#include <gtest/gtest.h>

namespace accel::validate {

/// The step of a row that is modelled; fails the test where it is not.
inline DecidedStep stepOf(const RunRow &row) {
  DiagnosticEngine engine;
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  const Run run = interpret(row);
  EXPECT_EQ(run.skipped, "");
  const auto job = jobOf(run, engine);
  EXPECT_TRUE(job) << renderText(engine);
  auto step = decide(context, *job, *shipped(run.target), engine);
  EXPECT_TRUE(step) << renderText(engine);
  return step.value_or(DecidedStep());
}

/// The variant of the layers, which is that of the first.
inline const SegmentVariant &layerOf(const DecidedStep &step) {
  for (size_t c = 0; c < step.model->calls.size(); ++c)
    if (step.model->calls[c].layer)
      return step.model->kinds[step.model->calls[c].kind]
          .variants[step.candidate.variants[c]];
  static const SegmentVariant none;
  return none;
}

/// Of one layer: what stays for the backward.
inline double layerBytes(const DecidedStep &step) {
  const SegmentVariant &v = layerOf(step);
  return static_cast<double>(v.savedBytes + v.savedInputBytes);
}

} // namespace accel::validate

#endif // ACCEL_TEST_UNIT_DECIDEDROWS_H
