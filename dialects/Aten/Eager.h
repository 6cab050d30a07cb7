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

/// Of `unsqueeze` in dimension 0, an integer: the model makes the result for
/// each of so many samples.
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

} // namespace accel::aten

#endif // ACCEL_DIALECTS_ATEN_EAGER_H
