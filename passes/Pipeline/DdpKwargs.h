//===- DdpKwargs.h - What a script passes to DDP ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_PIPELINE_DDPKWARGS_H
#define ACCEL_PASSES_PIPELINE_DDPKWARGS_H

#include <cstdint>
#include <optional>
#include <string>

namespace accel {

/// What a script passes as Accelerate's DistributedDataParallelKwargs.
struct DdpKwargs {
  std::optional<int64_t> bucketBytes; // bucket_cap_mb
  bool gradientAsBucketView = false;
  std::string commHook; // Candidate::commHook
};

} // namespace accel

#endif // ACCEL_PASSES_PIPELINE_DDPKWARGS_H
