//===- SolveCut.h - A bound and a start by minimum cuts ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// With a price on each saved byte instead of a cap, the best saved set is a
// minimum cut. The prices at which it changes give the lower convex hull of
// all saved sets: its value at the cap is a bound, its last point that fits is
// a saved set. Where hull points are far apart that set is poor, so it is
// filled up greedily; even so it is a start for the exact solver and no answer.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_RECOMPUTE_SOLVECUT_H
#define ACCEL_PASSES_RECOMPUTE_SOLVECUT_H

#include "passes/Recompute/SavedSet.h"

namespace accel {

struct CutResult {
  std::vector<bool> kept; // by storage of the model
  double seconds = 0;     // of `kept`
  double boundSeconds = 0;
  bool feasible = false; // `kept` fits; if not, nothing does
};

/// Peak caps are left out: the bound holds with them too, the set may not.
CutResult solveByCuts(const RecomputeModel &model, int64_t capBytes);

} // namespace accel

#endif // ACCEL_PASSES_RECOMPUTE_SOLVECUT_H
