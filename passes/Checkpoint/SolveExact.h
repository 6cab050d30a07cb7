//===- SolveExact.h - The best saved set, proven ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_CHECKPOINT_SOLVEEXACT_H
#define ACCEL_PASSES_CHECKPOINT_SOLVEEXACT_H

#include "passes/Checkpoint/SavedSet.h"

namespace accel {

struct SolveLimits {
  double seconds = 1; // of one solve; the answer then has a gap
  int rounds = 500;   // of cuts, where the backward's peak is capped
};

/// Solves by branch and cut (CBC), from the start of solveByCuts. Of the sets
/// that recompute least, one with few bytes. The bound says what was proven:
/// without a limit reached, gap() is 0.
///
/// A cap on the backward's peak depends on the order of its operations, which
/// depends on the set. The program has what holds in any order; a set whose
/// real peak is above the cap is cut off, and it is solved again.
SavedSetSolution solveExact(const SavedSetProblem &problem,
                            const SolveLimits &limits = {});

/// solveExact, remembered by what it depends on. One thread.
const SavedSetSolution &solveCached(const SavedSetProblem &problem);

} // namespace accel

#endif // ACCEL_PASSES_CHECKPOINT_SOLVEEXACT_H
