//===- QuantizedAttr.h - The mark of a quantised weight ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_QUANTIZE_QUANTIZEDATTR_H
#define ACCEL_PASSES_QUANTIZE_QUANTIZEDATTR_H

#include "llvm/ADT/StringRef.h"

namespace accel {

/// On a sharding.param: {format, packed, scales, expanded, copy, storage};
/// bytes as in plan::QuantizedWeight. On an argument of a function, the format:
/// some call binds it to such a parameter.
constexpr llvm::StringLiteral quantizedAttr = "sharding.quantized";

} // namespace accel

#endif // ACCEL_PASSES_QUANTIZE_QUANTIZEDATTR_H
