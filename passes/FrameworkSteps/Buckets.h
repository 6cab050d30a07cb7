//===- Buckets.h - Gradient buckets of DistributedDataParallel --*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FRAMEWORKSTEPS_BUCKETS_H
#define ACCEL_PASSES_FRAMEWORKSTEPS_BUCKETS_H

#include "passes/StepModel/StepModel.h"

namespace accel {

/// Gradients that are reduced together.
struct Bucket {
  std::vector<int> tensors; // positions in the list given
  int64_t bytes = 0;
};

/// torch's compute_bucket_assignment_by_size (torch/csrc/distributed/c10d/
/// reducer.cpp) for tensors of one dtype: a bucket is closed when it reaches
/// its limit, the first one at `firstLimit`.
std::vector<Bucket> assignBuckets(const std::vector<int64_t> &bytes,
                                  int64_t firstLimit, int64_t limit);

/// Trainable parameters in the order in which their gradients are ready: the
/// last call's last parameter first, a tied one with its first use. The reducer
/// orders its buckets so from the second iteration on.
std::vector<int> gradientOrder(const StepModel &model);

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKSTEPS_BUCKETS_H
