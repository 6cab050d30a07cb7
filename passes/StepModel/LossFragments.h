//===- LossFragments.h - What the allocator cannot reuse --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_STEPMODEL_LOSSFRAGMENTS_H
#define ACCEL_PASSES_STEPMODEL_LOSSFRAGMENTS_H

#include "passes/StepModel/SegmentGraph.h"

namespace accel {

/// Bytes by which a growing segment of the caching allocator (best fit,
/// expandable: c10/cuda/CUDACachingAllocator.cpp) is larger than the tensors
/// in it ever are, over forward and backward of `graph` run one after the
/// other. It matters for the loss, whose few tensors are the largest of all
/// and do not fit into each other's holes.
int64_t lossFragments(const SegmentGraph &graph);

} // namespace accel

#endif // ACCEL_PASSES_STEPMODEL_LOSSFRAGMENTS_H
