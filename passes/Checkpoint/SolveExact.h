//===- SolveExact.h - The best saved set, proven ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_CHECKPOINT_SOLVEEXACT_H
#define ACCEL_PASSES_CHECKPOINT_SOLVEEXACT_H

#include "passes/Checkpoint/SavedSet.h"

namespace accel {

/// Limits that a solve of one block does not meet without a cap on the peak.
/// Counts make the same answer everywhere; seconds are for the worst case.
struct SolveLimits {
  double seconds = 30;
  /// Sets that are tried under a cap on the backward's peak before the order
  /// is fixed.
  int rounds = 12;
  int orderRounds = 24; // and after
};

/// Solves by branch and cut (CBC), from the start of solveByCuts. Of the sets
/// that recompute least, one with few bytes. The bound says what was proven:
/// without a cap on the backward's peak and without a limit reached, gap() is
/// 0.
///
/// The backward's peak depends on the order of its operations, which depends
/// on the set. First the program has what holds in any order, and sets whose
/// real peak is above the cap are cut off; if those are many, the best set in
/// the order of need is found exactly (PeakMoments.h), and the gap is that to
/// any order.
SavedSetSolution solveExact(const SavedSetProblem &problem,
                            const SolveLimits &limits = {});

/// solveExact, remembered by what it depends on. One thread.
const SavedSetSolution &solveCached(const SavedSetProblem &problem);

} // namespace accel

#endif // ACCEL_PASSES_CHECKPOINT_SOLVEEXACT_H
