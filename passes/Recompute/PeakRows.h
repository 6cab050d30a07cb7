//===- PeakRows.h - What a backward holds in any order ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_RECOMPUTE_PEAKROWS_H
#define ACCEL_PASSES_RECOMPUTE_PEAKROWS_H

#include "passes/Recompute/SavedSet.h"

namespace accel {

/// While one operation of the backward runs, whatever the order: `constant`
/// bytes live, and of the storages `held` those that are kept.
struct PeakRow {
  int64_t constant = 0;
  std::vector<int> held; // RecomputeModel::storages
};

/// One row for each operation of the backward that no other row implies: what
/// it makes and reads, what an operation before it makes and one after it
/// reads, and kept values that one after it reads.
std::vector<PeakRow> peakRows(const JointGraph &graph,
                              const RecomputeModel &model);

} // namespace accel

#endif // ACCEL_PASSES_RECOMPUTE_PEAKROWS_H
