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
#include "mlir/IR/ValueRange.h"
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

/// Fails with a diagnostic unless 0 <= dim < rank.
llvm::LogicalResult checkDim(std::optional<mlir::Location> loc, int64_t dim,
                             int64_t rank);

/// Fails unless each of `dims` is a dimension of a tensor of `rank`, once.
llvm::LogicalResult checkDims(std::optional<mlir::Location> loc,
                              llvm::ArrayRef<int64_t> dims, int64_t rank);

/// The result of an operation that broadcasts its operands.
llvm::LogicalResult inferBroadcast(std::optional<mlir::Location> loc,
                                   mlir::ValueRange operands,
                                   mlir::Type elementType,
                                   llvm::SmallVectorImpl<mlir::Type> &results);

/// The shape that is left of `self` without `dims`, in `elementType`; with
/// `keepdim` they have size 1.
llvm::LogicalResult inferReduction(std::optional<mlir::Location> loc,
                                   mlir::RankedTensorType self,
                                   llvm::ArrayRef<int64_t> dims, bool keepdim,
                                   mlir::Type elementType,
                                   llvm::SmallVectorImpl<mlir::Type> &results);

/// The type in which integers are summed: 64 bits; of others their own.
mlir::Type sumType(mlir::Type type);

/// What the dialect's tensors may hold.
bool isElementType(mlir::Type type);

/// Row-major strides in elements.
llvm::SmallVector<int64_t> contiguousStrides(llvm::ArrayRef<int64_t> shape);

} // namespace accel::aten

#endif // ACCEL_DIALECTS_ATEN_TYPES_H
