//===- Types.h - PyTorch's shape and type rules -----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_TYPES_H
#define ACCEL_DIALECTS_ATEN_TYPES_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/ArrayRef.h"

namespace accel::aten {

/// Every operand and result of the dialect is a ranked tensor.
inline mlir::RankedTensorType tensorType(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}

/// The shape that `shapes` broadcast to; nullopt where sizes conflict.
std::optional<llvm::SmallVector<int64_t>>
broadcastShapes(llvm::ArrayRef<llvm::ArrayRef<int64_t>> shapes);

/// Element type of an operation over `types` and, where given, a scalar of the
/// type `scalar` (i64 or f64): tensors with dimensions go before 0-d ones, and
/// those before scalars, unless the category (integer, float) is higher.
mlir::Type promoteTypes(llvm::ArrayRef<mlir::RankedTensorType> types,
                        mlir::Type scalar = {});

/// Row-major strides in elements.
llvm::SmallVector<int64_t> contiguousStrides(llvm::ArrayRef<int64_t> shape);

} // namespace accel::aten

#endif // ACCEL_DIALECTS_ATEN_TYPES_H
