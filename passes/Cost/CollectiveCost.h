//===- CollectiveCost.h - Seconds of one collective -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Rings, trees and short-message protocols over the links of a target, as
// NCCL's tuner adds them up (src/graph/tuning.cc): a start, a hop for each step
// of the algorithm, and the bytes over the narrowest link. The fastest of what
// the target has is taken.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_COST_COLLECTIVECOST_H
#define ACCEL_PASSES_COST_COLLECTIVECOST_H

#include "passes/Targets/Target.h"
#include "runtime/plan/Mesh.h"

namespace accel {

enum class Collective {
  AllGather,
  ReduceScatter,
  AllReduce,
  Broadcast,
  AllToAll,
  Permute
};

/// Seconds of one collective of `bytes` (the whole buffer, of all ranks; of an
/// AllToAll one rank's, of which it sends all but its own part; of a Permute
/// what each rank sends to one other) alone on the wire; 0 for one rank.
double collectiveSeconds(const Target &target, Collective kind,
                         const plan::AxisGroup &group, double bytes);

/// Rows that the ranks of an expert-parallel group send to each other: each of
/// `tokens` to the ranks of `chosen` experts, which are anywhere.
struct Dispatch {
  double tokens = 0, chosen = 1;
  double rowBytes = 0;
  /// A token goes once to each node, and once to each rank there (DeepEP,
  /// HybridEP); else once for each of its experts.
  bool once = false;
};
/// Seconds of one dispatch, or of bringing its results back; 0 for one rank.
/// Links inside and between nodes work side by side.
double dispatchSeconds(const Target &target, const plan::AxisGroup &group,
                       const Dispatch &dispatch);

/// Seconds of a copy between a device and its host, pinned; infinity where the
/// target states no such link.
double hostCopySeconds(const Target &target, double bytes);

} // namespace accel

#endif // ACCEL_PASSES_COST_COLLECTIVECOST_H
