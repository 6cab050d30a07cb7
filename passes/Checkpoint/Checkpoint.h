//===- Checkpoint.h - Activation checkpointing ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_CHECKPOINT_CHECKPOINT_H
#define ACCEL_PASSES_CHECKPOINT_CHECKPOINT_H

#include <memory>

namespace mlir {
class Pass;
}

namespace accel {

/// `checkpoint{mode=none|pointwise|full}`: decides for each joint function
/// what its backward may read (`#aten.save` on each forward operation). The
/// mode is that of the calls' `checkpoint` attribute, else of `sharding.job`,
/// else the option (default pointwise). Calls of one function that differ in
/// mode call variants of it afterwards (`@F.full`, ...).
std::unique_ptr<mlir::Pass> createCheckpointPass();
void registerCheckpointPass();

} // namespace accel

#endif // ACCEL_PASSES_CHECKPOINT_CHECKPOINT_H
