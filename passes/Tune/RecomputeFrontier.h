//===- RecomputeFrontier.h - Checkpointing, from fast to small --*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Orders the assignments of checkpoint variants to layers: the first saves most
// and recomputes least, the last saves least, and between them one layer moves
// at a time along the lower hull of (bytes, seconds), the cheapest byte first.
// That is the greedy solution of the multiple-choice knapsack's linear
// relaxation (Sinha and Zoltners, 1979), whose error is at most one layer's
// move.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_TUNE_RECOMPUTEFRONTIER_H
#define ACCEL_PASSES_TUNE_RECOMPUTEFRONTIER_H

#include "passes/Tune/Search.h"

namespace accel::tune {

/// Counts (Point::counts) from fast to small. One entry, the configured counts,
/// where checkpointing is fixed; as many as there are variants where all
/// layers must be alike.
std::vector<std::vector<int>> recomputeFrontier(const Space &space, int split,
                                                const CostOf &costOf);

/// How many entries before the last the one with the fewest bytes is looked
/// for: recomputed tensors of one layer take memory too.
size_t nearLast(const std::vector<std::vector<int>> &frontier);

/// At most `limit` of `values`, both ends among them.
std::vector<int> spread(const std::vector<int> &values, size_t limit);

} // namespace accel::tune

#endif // ACCEL_PASSES_TUNE_RECOMPUTEFRONTIER_H
