//===- Segments.h - What the allocator holds for a plan ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// accel-run takes a CUDA device's memory from torch's caching allocator, and
// its plan says in which order: shards and states, then of each step the
// buffers of units, values, what the operators of a call make and drop, and
// what they need inside. Played through the allocator's rules (passes/Replay)
// that is what the process holds of the device.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_SEGMENTS_SEGMENTS_H
#define ACCEL_PASSES_SEGMENTS_SEGMENTS_H

#include "passes/Replay/Replay.h"
#include "passes/Segments/InnerBytes.h"
#include "passes/Targets/Target.h"
#include "runtime/plan/Plan.h"

#include <memory>

namespace accel {

/// The allocator as accel-run sets it up where the user has not.
replay::AllocatorRules accelRunAllocator();

/// How a rank of accel-run asks for memory: the allocator's rules, and whether
/// its torch keeps the workspaces of cuBLAS and cuBLASLt from their first use
/// on (releases up to 2.11), or asks for them anew for each product (2.15).
struct RankAllocator {
  replay::AllocatorRules rules;
  bool keepsWorkspaces = false;
};

/// The tensors of a rank of `stage` as its CPU thread asks for them: from its
/// start, step by step.
class PlanTensors {
public:
  PlanTensors(const plan::Plan &plan, int stage, const CudaDevice &device,
              bool keepsWorkspaces = false);
  ~PlanTensors();
  PlanTensors(const PlanTensors &) = delete;
  PlanTensors &operator=(const PlanTensors &) = delete;

  /// One optimizer step.
  void step();
  /// The evaluation, where the plan has one.
  void evaluate();
  const replay::Problem &problem() const;
  /// Of the workspaces that are kept, from their first use on.
  int64_t keptBytes() const;

private:
  class Recorder;
  std::unique_ptr<Recorder> recorder;
};

/// Plan::keptWorkspaceBytes; of a pipeline those of the stage that keeps most.
int64_t keptWorkspaceBytes(const plan::Plan &plan, const Target &target,
                           const RankAllocator &allocator);

/// Of a rank at their peaks: segments, and tensors with what operators need
/// inside, in blocks as the allocator rounds them (max_memory_allocated).
struct SegmentBytes {
  int64_t reserved = 0, allocated = 0;
};
/// Steps until nothing changes any more, an evaluation and a step. Of a
/// pipeline those of the stage that has most.
SegmentBytes replaySegments(const plan::Plan &plan, const Target &target,
                            const RankAllocator &allocator);

} // namespace accel

#endif // ACCEL_PASSES_SEGMENTS_SEGMENTS_H
