//===- Reserved.cpp - What the caching allocator keeps --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Executors/Engine.h"

namespace accel {

/// Each stream's pool keeps what it once held; memory freed in one is not
/// reused in another. The compute stream's is cut into the many sizes of
/// activations and has idle parts; the others hold few large tensors, each a
/// segment of its own rounded to 2 MiB (c10/cuda/CUDACachingAllocator.cpp,
/// kRoundLarge).
int64_t reservedBytes(const Engine &engine, const Target &target) {
  int64_t bytes = target.reservedBytes(engine.poolPeak(Pool::Compute));
  const int64_t grain = std::max<int64_t>(1, target.allocatorGranularity);
  for (Pool pool : {Pool::Gather, Pool::Reduce, Pool::AllReduce}) {
    const int64_t peak = engine.poolPeak(pool);
    bytes += (peak + grain - 1) / grain * grain;
  }
  return bytes;
}

} // namespace accel
