//===- Search.h - The fastest setting that fits -----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The joint search over a Space: the point of least time whose bytes are within
// a budget, and the front of bytes and time. The search knows points only
// through a Evaluate. It bounds by the coarse knobs (mesh, micro-batch,
// offload,
// ...): the smallest setting of the others says whether any fits, the most
// generous one how fast they can get; those that may still win are solved by a
// frontier of recomputation (layers move along the lower hull of bytes against
// seconds, as the LP relaxation of the knapsack does), descent over the other
// knobs, exchanges of one change against another, and the exact knapsack of
// checkpointing at the best points. Exact.h is its oracle.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_TUNE_SEARCH_H
#define ACCEL_PASSES_TUNE_SEARCH_H

#include "passes/Tune/Space.h"

#include <functional>
#include <optional>

namespace accel::tune {

struct Evaluation {
  int64_t bytes = 0;  // of the device, what the budget bounds
  double seconds = 0; // of an optimizer step
  bool possible = true;
};
using Evaluate = std::function<Evaluation(const Point &)>;
/// What one call of a group's variant costs, for the order of the frontier
/// only.
struct VariantCost {
  int64_t bytes = 0;
  double seconds = 0;
};
using CostOf = std::function<VariantCost(int split, int group, int variant)>;
/// Counts (Point::counts) of least seconds whose bytes by CostOf are at most
/// `bytes` together, exactly; empty where there are none.
using ShareOut = std::function<std::vector<int>(int split, int64_t bytes)>;

struct Verdict {
  Point point;
  Evaluation evaluation;
};

struct SearchOptions {
  int64_t budgetBytes = 0;
  /// Points evaluated at most: a count, so that the answer does not depend on
  /// the machine that plans.
  int64_t maxEvaluations = 3000;
  /// Points known to be good, which are evaluated first: what is found is at
  /// least as good, however early the search stops.
  std::vector<Point> starts;
  /// Spaces of at most this many points are enumerated: exact.
  int64_t enumerateUpTo = 1000;
  /// A change that wins less than this part of a step is not worth making.
  double worthwhile = 0.001;
  /// Points of the front that are searched for beside those met by chance.
  int frontLevels = 8;
  /// Where it is set, the best points are refined with it: a frontier of layers
  /// is exact only up to one layer's step.
  ShareOut shareOut;
};

struct SearchResult {
  Verdict configured;
  std::optional<Verdict> best; // fastest within the budget
  Verdict smallest;            // least bytes of all that were evaluated
  /// No evaluated point has both fewer bytes and less time: by rising bytes.
  std::vector<Verdict> front;
  int64_t evaluations = 0;
  bool complete = true; // false: stopped by maxEvaluations
  bool exact = false;   // every point of the space was evaluated
};

SearchResult search(const Space &space, const Evaluate &evaluate,
                    const CostOf &costOf, const SearchOptions &options);

/// Of verdicts, those that no other is better than in both.
std::vector<Verdict> paretoFront(std::vector<Verdict> all);

/// Sorts by bytes and leaves out what another verdict beats in both.
void keepFront(std::vector<Verdict> &verdicts);

} // namespace accel::tune

#endif // ACCEL_PASSES_TUNE_SEARCH_H
