//===- LossHead.h - The loss in chunks --------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A head multiplies rows [T, hidden] by its weight [hidden, V] and takes the
// cross-entropy of T x V logits, which exist several times over: cast to fp32,
// as log-probabilities, as gradients. Cut into chunks of rows, only one chunk
// of them exists at a time, if a chunk's gradients are computed right after
// its loss. That needs no matmul more than before, since nothing is
// recomputed (Liger Kernel, Hsu et al. 2024); it needs the gradient of the loss
// while the loss is computed, which is so for the last segment of a graph.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_LOSS_LOSSHEAD_H
#define ACCEL_PASSES_LOSS_LOSSHEAD_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel {

/// Of a sharding.call, the decision (#sharding.loss).
constexpr llvm::StringLiteral lossAttr = "sharding.loss";
/// Of a function (unit): its loss is computed in chunks, so its forward and
/// backward are one.
constexpr llvm::StringLiteral fusedAttr = "aten.fused";
/// Of an operation (i64): the chunk whose rows it cuts out.
constexpr llvm::StringLiteral chunkAttr = "aten.chunk";

/// Cuts the mean cross-entropy that `function` returns into `chunks` chunks of
/// rows, as even as can be, each the sum over its labels, and divides their sum
/// by the number of labels that count. What stands between the matmul (mm or
/// addmm) and the loss must be pointwise and by rows: casts, scales, soft caps.
/// Fails with a diagnostic where it is not. 1 changes nothing.
mlir::LogicalResult chunkLoss(mlir::func::FuncOp function, int64_t chunks);

} // namespace accel

#endif // ACCEL_PASSES_LOSS_LOSSHEAD_H
