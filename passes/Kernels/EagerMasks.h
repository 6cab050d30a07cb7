//===- EagerMasks.h - Masks of the order of tokens, made once ---*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_KERNELS_EAGERMASKS_H
#define ACCEL_PASSES_KERNELS_EAGERMASKS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LogicalResult.h"

namespace accel::eager {

/// Part of toEagerForm (EagerForm.h): makes the masks of the order of tokens,
/// and of windows, before the first layer, where transformers' models make them
/// (create_causal_mask and create_sliding_window_causal_mask of
/// masking_utils.py), and hands them to layers as inputs, which checkpointed
/// layers therefore hold. Attention of torch
/// (scaled_dot_product_attention) takes truth values, [1, 1, S, S], which it
/// turns into numbers in each layer, and none where it can be told the order;
/// attention by single matmuls takes numbers for each sample, [B, 1, S, S], in
/// the type of the layers' input, and always one.
///
/// Stay in the layers: masks beside another mask (biases, documents), of models
/// that make them in layers (aten::maskedAttr), and of ranks that share a
/// sequence (cp, sp).
mlir::LogicalResult shareMasks(mlir::ModuleOp module);

} // namespace accel::eager

#endif // ACCEL_PASSES_KERNELS_EAGERMASKS_H
