//===- SplitJoint.h - Forward and backward of a joint -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_PARTITION_SPLITJOINT_H
#define ACCEL_PASSES_PARTITION_SPLITJOINT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel {

/// Replaces `@F.joint` by
///   `@F.forward(all arguments) -> (results, saved values)` and
///   `@F.backward(inputs, outputs, saved values, parameters, tangents)
///      -> (input gradients, parameter gradients)`,
/// each argument and result with its `aten.binding`. The backward takes only
/// what it reads. Values that are marked `recompute` are recomputed, and
/// views always are; operations stand in the order that `splitGraph` finds
/// (JointGraph.h). An operation without a mark is an error.
mlir::LogicalResult splitJoint(mlir::func::FuncOp joint);

} // namespace accel

#endif // ACCEL_PASSES_PARTITION_SPLITJOINT_H
