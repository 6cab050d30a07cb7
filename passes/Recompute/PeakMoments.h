//===- PeakMoments.h - What a backward holds in its order -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// In the order of need (splitGraph without reordering) the bytes that live at
// any moment of the backward are a linear function of what is kept, what is
// repeated, and what is repeated by then. The exact solver adds these functions
// for the moments that it meets.
//
// A stage is an operation of the backward that a tangent leads to, with what
// must be there for it: first the repeated operations, in the order of the
// joint, then views of kept values and the like, then itself. A moment is one
// of the latter two, or a repeated operation in a stage; if that is not
// repeated there, the moment lies between two others and bounds nothing new.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_RECOMPUTE_PEAKMOMENTS_H
#define ACCEL_PASSES_RECOMPUTE_PEAKMOMENTS_H

#include "passes/Recompute/SavedSet.h"

namespace accel {

/// Storages and nodes are those of the model. A node is repeated by now if it
/// is by the end of the stage before, or of this stage if it is no later than
/// `node`. Live are `constant` bytes; each storage of `later` that is kept or
/// repeated by now; and each of `maybe` that is so and that a repeated
/// operation reads now or later.
struct PeakMoment {
  int stage = 0;
  /// The repeated operation that runs, if it does in this stage; the number of
  /// nodes at an operation of the backward's own.
  int node = 0;
  int own = -1; // the backward's own operation that runs, or -1
  int64_t constant = 0;
  std::vector<int> later, maybe;
};

class PeakMoments {
public:
  PeakMoments(const JointGraph &graph, const RecomputeModel &model);

  PeakMoment atOwn(int own) const;
  PeakMoment atNode(int stage, int node) const;

  /// By storage: an own operation reads it in this stage or before.
  const std::vector<bool> &readBy(int stage) const { return read[stage]; }
  /// By node: repeated by the end of a stage (none by stage -1), where the
  /// storages `kept` are kept.
  std::vector<bool> repeatedBy(int stage, const std::vector<bool> &kept) const;
  int64_t bytes(const PeakMoment &moment, const std::vector<bool> &kept) const;

  /// Where more than `cap` lives, at most `count` moments of different stages,
  /// the fullest first.
  std::vector<PeakMoment> fullest(const std::vector<bool> &kept, int64_t cap,
                                  size_t count) const;

private:
  PeakMoment at(int stage, int node, int own) const;
  int64_t bytes(const PeakMoment &moment, const std::vector<bool> &kept,
                const std::vector<bool> &all, const std::vector<bool> &before,
                const std::vector<bool> &after) const;

  const JointGraph &graph;
  const RecomputeModel &model;
  std::vector<int> maker, storageOf;
  std::vector<int> ops;        // the backward's own, in order
  std::vector<int> stageOf;    // by own operation
  std::vector<int> begin;      // by stage: its first own operation
  std::vector<int> madeAt;     // by instruction: own operation, or -1
  std::vector<int> last;       // by base: own operation that reads it, or -1
  std::vector<int> firstStage; // by base: that reads it, or -1
  std::vector<bool> returned, ofParameter, given; // by base
  std::vector<std::vector<bool>> read;            // by stage, by storage
};

} // namespace accel

#endif // ACCEL_PASSES_RECOMPUTE_PEAKMOMENTS_H
