//===- Pareto.h - Ways to checkpoint a segment ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_RECOMPUTE_PARETO_H
#define ACCEL_PASSES_RECOMPUTE_PARETO_H

#include "passes/Recompute/SolveExact.h"

namespace accel {

/// A saved set that no other one beats in bytes, recomputation and backward
/// peak at once.
struct ParetoPoint {
  int64_t capBytes = 0; // that it was solved for: what a budget asks for
  SavedSetSolution solution;
  SegmentVariant variant; // "none", "pointwise", "full" or "budget"
};

/// The front of a segment on `target`, by saved bytes: the exact answers at
/// `points` caps between nothing and what "none" saves, and the three modes
/// where nothing beats them. Remembered by content, as its answers are.
const std::vector<ParetoPoint> &
paretoFront(const JointGraph &graph, const Target &target, int points = 20);

/// Calls of one segment, and the ways it can be run.
struct BudgetKind {
  int calls = 1;
  std::vector<int64_t> bytes; // by way
  std::vector<double> seconds;
};

struct BudgetShare {
  bool feasible = false;
  int64_t leastBytes = 0; // that any choice takes
  /// By kind, for each call the way it takes, less bytes first: the calls that
  /// come last in the forward come first in the backward, when all the others'
  /// bytes are still there, and the more a call keeps the less its backward
  /// adds.
  std::vector<std::vector<int>> ways;
  int64_t bytes = 0;
  double seconds = 0;
};

/// Gives each call a way so that all bytes together are at most `budget` and
/// the seconds are least; exact (an integer program with one variable for each
/// kind and way).
BudgetShare shareBudget(const std::vector<BudgetKind> &kinds, int64_t budget);

} // namespace accel

#endif // ACCEL_PASSES_RECOMPUTE_PARETO_H
