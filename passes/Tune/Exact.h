//===- Exact.h - Every setting, for small cases -----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The oracle of Search.h: evaluates every point of a Space.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_TUNE_EXACT_H
#define ACCEL_PASSES_TUNE_EXACT_H

#include "passes/Tune/Search.h"

namespace accel::tune {

/// Points of the space, or -1 if there are more than `limit`.
int64_t countPoints(const Space &space, int64_t limit);

/// The fastest within the budget and the exact front. `maxEvaluations` does not
/// bound it: ask `countPoints` before.
SearchResult enumerate(const Space &space, const Evaluate &evaluate,
                       int64_t budgetBytes);

/// The option of Knob::Optimizer that is fastest in the configured setting:
/// what an update takes depends on little else.
int quickestOptimizer(const Space &space, const Evaluate &evaluate);

} // namespace accel::tune

#endif // ACCEL_PASSES_TUNE_EXACT_H
