//===- FuseLoss.h - Loss and gradients in one function ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_PARTITION_FUSELOSS_H
#define ACCEL_PASSES_PARTITION_FUSELOSS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel {

/// Replaces a joint function whose loss is in chunks (`fusedAttr`) by one
/// function `.backward` without a forward: it returns the outputs, then the
/// gradients. Operations of one chunk follow each other, from its rows to its
/// gradients; before them stands what they need of none, behind them the rest.
mlir::LogicalResult fuseLoss(mlir::func::FuncOp joint);

} // namespace accel

#endif // ACCEL_PASSES_PARTITION_FUSELOSS_H
