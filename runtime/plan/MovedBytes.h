//===- MovedBytes.h - What a step moves beside its operators ----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Updates, the norm of gradients, and copies of shards to where they are
// gathered take as long as their bytes take through memory. passes/Simulate
// counts these bytes, and accel-run --fit divides measured seconds by them.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_MOVEDBYTES_H
#define ACCEL_RUNTIME_PLAN_MOVEDBYTES_H

#include "runtime/plan/Optimizers.h"

#include <optional>
#include <string>

namespace accel::plan {

/// Bytes that are read and written, and what has their seconds in a target:
/// "adamw f32 2 ranks", "grad_norm f32 2 ranks", "all_gather f32 2 ranks".
struct MovedBytes {
  std::string key;
  double bytes = 0;
};

/// Of a unit's update, by the plan's optimizer. What is measured of it has in
/// it what ranks exchange and which matrices it multiplies, as Muon's. This and
/// the others: nothing of GPUs, whose host only queues, of pipelines, of which
/// no stage's part is measured, and of what is offloaded.
std::optional<MovedBytes>
movedByUpdate(const Plan &plan, const OptimizerRule &rule, const Unit &unit);
/// Of the norm of all gradients, which are scaled by it.
std::optional<MovedBytes> movedByNorm(const Plan &plan);
/// Of a unit's shard, which is copied, or cast, to its place among those that
/// are gathered.
std::optional<MovedBytes> movedByGather(const Plan &plan, const Unit &unit);

/// One of them, by the kind of the instruction; nothing of other kinds.
std::optional<MovedBytes> movedBy(const Plan &plan, const OptimizerRule &rule,
                                  const ProgramInstruction &instruction);

/// Of the shard and of its place, as they stand on a rank.
double gatherCopyBytes(const Plan &plan, const Unit &unit);

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_MOVEDBYTES_H
