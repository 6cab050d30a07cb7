//===- PeakMoments.h - What a backward holds in its order -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// In the order of need (splitGraph without reordering) the bytes that live
// while an operation of the backward itself runs are a linear function of
// what is kept, what is repeated, and what is repeated by then. The exact
// solver adds these functions for the moments that it meets.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_CHECKPOINT_PEAKMOMENTS_H
#define ACCEL_PASSES_CHECKPOINT_PEAKMOMENTS_H

#include "passes/Checkpoint/SavedSet.h"

namespace accel {

/// Storages are those of the model. Live are `constant` bytes; each storage of
/// `later` that is kept or repeated by now; and each of `maybe` that is so and
/// that an operation reads which is repeated after now.
struct PeakMoment {
  int64_t constant = 0;
  std::vector<int> later, maybe;
  std::vector<bool> readByNow; // by storage: by the backward's own operations
};

class PeakMoments {
public:
  PeakMoments(const JointGraph &graph, const RecomputeModel &model);
  /// At the i-th operation of the backward's own.
  PeakMoment at(int i) const;
  /// Own operation at which most lives for this set in the order of need, if
  /// that is more than `cap`; -1 if none is.
  int fullest(const SavedSet &saved, int64_t cap) const;

private:
  const JointGraph &graph;
  const RecomputeModel &model;
  std::vector<int> maker, storageOf;
  std::vector<int> ops;                // the backward's own, in order
  std::vector<std::vector<int>> reads; // by own operation: bases
  std::vector<int> first, last;        // by base: own operation, or -1
};

} // namespace accel

#endif // ACCEL_PASSES_CHECKPOINT_PEAKMOMENTS_H
