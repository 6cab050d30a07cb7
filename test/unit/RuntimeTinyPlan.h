//===- RuntimeTinyPlan.h - A plan made by hand ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Embedding, one linear layer, log-softmax and its loss, as two units: small
// enough to write as operators, and with all that a program can hold.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TEST_UNIT_RUNTIMETINYPLAN_H
#define ACCEL_TEST_UNIT_RUNTIMETINYPLAN_H

#include "runtime/plan/Plan.h"

namespace accel::test {

struct TinyOptions {
  int64_t shard = 1, replicate = 1, accumulation = 1;
  plan::DType gather = plan::DType::F32, reduce = plan::DType::F32;
  double maxGradNorm = 0;
  bool lossScaling = false;
  bool inlineUpdate = false; // the optimizer right after a unit's reduction
  const char *algorithm = "all_to_all";
  int64_t vocab = 29, hidden = 12, batch = 2, length = 5;
};

/// Verified by the caller; memory is predicted.
plan::Plan tinyPlan(const TinyOptions &options);

} // namespace accel::test

#endif // ACCEL_TEST_UNIT_RUNTIMETINYPLAN_H
