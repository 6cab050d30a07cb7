//===- Partition.h - Outline forward and backward ---------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_PARTITION_PARTITION_H
#define ACCEL_PASSES_PARTITION_PARTITION_H

#include <memory>

namespace mlir {
class Pass;
}

namespace accel {
/// `partition`: splits each joint function by the decisions of `checkpoint`
/// (see SplitJoint.h). The original function remains: evaluation runs it.
std::unique_ptr<mlir::Pass> createPartitionPass();
void registerPartitionPass();
} // namespace accel

#endif // ACCEL_PASSES_PARTITION_PARTITION_H
