//===- DecideSaved.h - Which forward values are kept ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_CHECKPOINT_DECIDESAVED_H
#define ACCEL_PASSES_CHECKPOINT_DECIDESAVED_H

#include "dialects/Sharding/Sharding.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace accel {

using CheckpointMode = sharding::CheckpointMode;

/// The operations of a joint function that compute its original results; the
/// others are its backward.
llvm::DenseSet<mlir::Operation *> forwardOps(mlir::func::FuncOp joint);

/// Puts `#aten.save` on each forward operation of `joint`. None keeps all but
/// views; Pointwise keeps products, attention, reductions and statistics made
/// of them, and recomputes what is pointwise, moves data or is a norm; Full
/// keeps nothing, so that the backward starts from the inputs. `reason` is why
/// the mode was chosen.
void decideSaved(mlir::func::FuncOp joint, CheckpointMode mode,
                 llvm::StringRef reason);

} // namespace accel

#endif // ACCEL_PASSES_CHECKPOINT_DECIDESAVED_H
