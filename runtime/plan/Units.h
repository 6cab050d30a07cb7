//===- Units.h - What each rank holds ---------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The mesh of ranks and the flat buffers that are sharded over it. Sizes are
// elements; bytes follow from the unit's dtypes.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_UNITS_H
#define ACCEL_RUNTIME_PLAN_UNITS_H

#include "runtime/plan/DType.h"

#include <string>
#include <vector>

namespace accel::plan {

/// One named axis of the device mesh; the last axis varies fastest with rank.
struct Axis {
  std::string name; // dp_replicate, dp_shard, (cp, tp, pp later)
  int64_t size = 1;
  bool operator==(const Axis &) const = default;
};

/// One optimizer state of a unit, by its description's name: "exp_avg".
struct State {
  std::string name;
  DType dtype = DType::F32;
  bool operator==(const State &) const = default;
};

/// Parameters that are stored, gathered and reduced together, as one flat
/// buffer of `padded` elements; rank i of the shard group keeps elements
/// [i * padded / n, (i + 1) * padded / n).
struct Unit {
  std::string name;                   // FQN of the module, "" is the root unit
  std::vector<std::string> shardAxes; // empty: every rank holds all of it
  std::vector<std::string> replicateAxes; // gradients are all-reduced over them
  DType storage = DType::F32; // the flat shard and its gradient shard
  DType gather = DType::F32;  // the gathered buffer, and compute
  DType reduce = DType::F32;  // the gradient buffer on the wire
  bool trainable = true;
  int stage = 0; // of a pipeline: whose ranks hold it
  /// Several stages read the parameters, and each has a unit of them: the index
  /// of the first stage's, to which they belong, in those of the others; else
  /// -1. Their gradients are all-reduced over the pipeline's axis too, among
  /// those stages.
  int copyOf = -1;
  /// Every rank holds the gathered buffer too, between steps as in them: it is
  /// gathered before the first step, and anew after each update.
  bool whole = false;
  /// "fp16" or "bf16": where replicas are all that shares it, its gradients are
  /// all-reduced in that dtype (torch's communication hooks), in Receive.
  std::string hook;
  std::vector<State> states;
  std::vector<int> parameters; // by offset; of a copy as of what it copies
  int64_t numel = 0;           // sum of the parameters' elements on a rank
  int64_t padded = 0;          // with alignment gaps, a multiple of 64 * ranks
  /// Optimizer groups in the flat buffer: elements [begin, end) of group.
  struct GroupRange {
    int group = 0;
    int64_t begin = 0, end = 0;
    bool operator==(const GroupRange &) const = default;
  };
  std::vector<GroupRange> groupRanges;
  bool operator==(const Unit &) const = default;
};

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_UNITS_H
