//===- Eager.h - What transformers' modules do in other ways ----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Attributes of operations that transformers' own modules compute in a way that
// holds other tensors. They change nothing in what accel-run executes; the
// models of eager executors bring functions into that form
// (passes/Kernels/EagerForm).
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_EAGER_H
#define ACCEL_DIALECTS_ATEN_EAGER_H

#include "llvm/ADT/StringRef.h"

namespace accel::aten {

/// Of `slice.Tensor`, an integer: the slice is taken with a list of positions,
/// which copies it and saves the positions, and is repeated so many times.
constexpr llvm::StringLiteral byListAttr = "aten.by_list";

/// Of `unsqueeze` in dimension 0, and of a function, an integer: the model
/// makes the results for each of so many samples.
constexpr llvm::StringLiteral perSampleAttr = "aten.per_sample";

/// Of `scaled_dot_product_attention`, a string, one of the following.
constexpr llvm::StringLiteral maskedAttr = "aten.masked";
/// It never leaves the order of tokens to the kernel.
constexpr llvm::StringLiteral maskAlways = "always";
/// The model adds its mask, an input, to that order once for all layers.
constexpr llvm::StringLiteral maskAdded = "added";
/// The model makes truth values of that order once for all layers, and layers
/// fill with them where a query may not look.
constexpr llvm::StringLiteral maskFilled = "filled";

/// It adds a bias to the scores, of zeros, that the mask fills in each layer.
constexpr llvm::StringLiteral maskBias = "bias";

/// Of `sharding.call` of a layer, an integer: the model hands the layer the
/// mask of a window of so many keys, more than there are, which hides nothing
/// else than the mask of all keys, but is a tensor of its own.
constexpr llvm::StringLiteral wholeWindowAttr = "aten.whole_window";

/// Of `scaled_dot_product_attention`, a unit: the model copies query, key and
/// value into the order [B, heads, S, D].
constexpr llvm::StringLiteral byHeadsAttr = "aten.by_heads";

/// Of `scaled_dot_product_attention`, a unit: the model joins what it turned of
/// query and key with the rest of a head, which is empty here: both lie in
/// memory in the order [B, heads, S, D], and so does what the kernels write.
constexpr llvm::StringLiteral joinedAttr = "aten.joined";

/// Of `_softmax`, a unit: the scores of torch's attention by math, which needs
/// whole rows of them.
constexpr llvm::StringLiteral wholeScoresAttr = "aten.whole_scores";

/// Of `_softmax` and its derivative, a unit: a kernel that knows the order of
/// tokens, reads what is on and below the diagonal and writes zeros above it
/// (scaled_upper_triang_masked_softmax.h of Megatron-LM,
/// megatron/fused_kernels, and of Apex, csrc/megatron).
constexpr llvm::StringLiteral causalScoresAttr = "aten.causal_scores";

/// Of `slice.Tensor` from row 0, three integers n, k, m: the rows are looked up
/// at a list of positions [n, m], which is expanded to [k, m]; a single row m
/// times.
constexpr llvm::StringLiteral lookedUpAttr = "aten.looked_up";

/// Of `_to_copy`, a unit: the model computes on in the type that it has. Of
/// `_softmax`, a unit: the model asks for that type, and autocast leaves it. Of
/// `_log_softmax`, a unit: part of torch's cross_entropy, which asks for the
/// type of its input, and autocast leaves that on other devices than CPUs.
constexpr llvm::StringLiteral ownTypeAttr = "aten.own_type";

/// Of `_to_copy`, a unit: the model asks for fp32, which is a copy where
/// autocast has made less of the value, also in a model of fp32 weights.
constexpr llvm::StringLiteral asksFloatAttr = "aten.asks_float";

/// Of `rms_norm`, a unit: the model scales its input, and computes only the
/// variance from a copy in fp32.
constexpr llvm::StringLiteral plainFactorAttr = "aten.plain_factor";

/// Of `scaled_dot_product_attention`, a unit: its mask is trained.
constexpr llvm::StringLiteral trainedMaskAttr = "aten.trained_mask";

/// Of `clone`, of what enters, and of `view`, of what leaves, a unit: PyTorch's
/// attention by single matmuls, which computes in fp32 on CPUs.
constexpr llvm::StringLiteral mathAttr = "aten.math";

/// Of the last operation of a part of a layer, a unit: the model computes the
/// part before all that the part does not read.
constexpr llvm::StringLiteral aheadAttr = "aten.ahead";

/// Of `mul.Tensor`, a unit: its backward is autograd's (MulBackward0), which
/// computes the second operand's gradient first, and sums up what was broadcast
/// when both are there. Without it products are summed up one after the other.
constexpr llvm::StringLiteral autogradOrderAttr = "aten.autograd_order";

/// Of `add.Tensor`, a string, one of the following.
constexpr llvm::StringLiteral biasedAttr = "aten.biased";
/// A bias and a mask of keys, an input: each layer fills the bias where truth
/// values [B, 1, S, S], made once for all layers, say so.
constexpr llvm::StringLiteral biasFilled = "filled";
/// Scores and a bias: each layer fills the bias by the order of tokens.
constexpr llvm::StringLiteral biasOrdered = "ordered";
/// A bias and the order of tokens, which layers fill in instead.
constexpr llvm::StringLiteral biasPlain = "plain";

} // namespace accel::aten

#endif // ACCEL_DIALECTS_ATEN_EAGER_H
