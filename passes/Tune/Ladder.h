//===- Ladder.h - Checkpointing, from fast to lean --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Orders the ways of sharing checkpoint variants out among layers: the first
// step saves most and computes least again, the last saves least, and between
// them one layer moves at a time along the lower hull of (bytes, seconds), the
// cheapest byte first. That is the greedy solution of the multiple-choice
// knapsack's linear relaxation (Sinha and Zoltners, 1979), whose error is at
// most one layer's move.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_TUNE_LADDER_H
#define ACCEL_PASSES_TUNE_LADDER_H

#include "passes/Tune/Search.h"

namespace accel::tune {

/// Counts (Point::counts) from fast to lean. One entry, the configured counts,
/// where checkpointing is fixed; as many as there are variants where all
/// layers must be alike.
std::vector<std::vector<int>> checkpointLadder(const Space &space, int split,
                                               const CostOf &costOf);

/// How far before its last rung the leanest of a ladder is looked for: what is
/// recomputed takes memory too, of one layer.
size_t nearLast(const std::vector<std::vector<int>> &rungs);

/// At most `limit` of `values`, both ends among them.
std::vector<int> spread(const std::vector<int> &values, size_t limit);

} // namespace accel::tune

#endif // ACCEL_PASSES_TUNE_LADDER_H
