//===- SolveExact.h - The best saved set, proven ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_RECOMPUTE_SOLVEEXACT_H
#define ACCEL_PASSES_RECOMPUTE_SOLVEEXACT_H

#include "passes/Recompute/SavedSet.h"

namespace accel {

/// Limits that a solve of one block does not meet. Counts, no seconds, so that
/// the answer is the same everywhere.
struct SolveLimits {
  int nodes = 20000; // of branch and bound, of all rounds together
  /// Sets that are tried under a cap on the backward's peak.
  int rounds = 200;
};

/// Solves by branch and cut (CBC), from the start of solveByCuts. Of the sets
/// that recompute least, one with few bytes. The bound says what was proven:
/// without a limit reached, gap() is 0.
///
/// The backward's peak depends on the order of its operations, which depends
/// on the set. Solved is the order of need: first the program has what holds in
/// any order, and from each set whose peak is above the cap it learns the
/// moments at which it is (PeakMoments.h). A set whose other order
/// (JointOrder.h) is within the cap is taken too, which may recompute less than
/// the bound of the order of need.
SavedSetSolution solveExact(const SavedSetProblem &problem,
                            const SolveLimits &limits = {});

/// solveExact, remembered by what it depends on. One thread.
const SavedSetSolution &solveCached(const SavedSetProblem &problem);

} // namespace accel

#endif // ACCEL_PASSES_RECOMPUTE_SOLVEEXACT_H
