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
/// what it reads. Values that are marked `recompute` are computed again right
/// before their first use; views always are. An operation without a mark is an
/// error.
mlir::LogicalResult splitJoint(mlir::func::FuncOp joint);

/// Orders a backward function's operations so that less is live at its peak:
/// keeps the better of the given order and a greedy one. The result's values
/// do not change.
void reorderForMemory(mlir::func::FuncOp function);

/// Bytes of own storages live at the peak of `function` in block order, over
/// its arguments (which live on); results live to the end.
int64_t peakBytes(mlir::func::FuncOp function);

} // namespace accel

#endif // ACCEL_PASSES_PARTITION_SPLITJOINT_H
