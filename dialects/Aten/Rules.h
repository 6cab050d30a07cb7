//===- Rules.h - How an operation's rules are written -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// For the files that define operations, and for no header.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_RULES_H
#define ACCEL_DIALECTS_ATEN_RULES_H

#include "dialects/Aten/BackwardBuilder.h"
#include "dialects/Aten/Types.h"

/// The result types of OP, from `adaptor` into `results`.
#define INFER(OP)                                                              \
  LogicalResult OP::inferReturnTypes(                                          \
      MLIRContext *context, std::optional<Location> loc, Adaptor adaptor,      \
      SmallVectorImpl<Type> &results)

/// The derivative rule of OP (DerivativeOpInterface).
#define BACKWARD(OP)                                                           \
  LogicalResult OP::buildBackward(BackwardBuilder &b, ArrayRef<Value> grads,   \
                                  ArrayRef<bool> needed,                       \
                                  MutableArrayRef<Value> operandGrads)

namespace accel::aten {

/// What a CPU operator that is not pointwise allocates inside (Rationale.md has
/// the table); 0 for those that allocate nothing.
int64_t kernelWorkspaceBytes(mlir::Operation *op);

/// Bytes of all operands and results.
double touchedBytes(mlir::Operation *op);
/// Those of the product of two matrices.
double matmulFlops(mlir::Value a, mlir::Value b);
/// The type of that, or a diagnostic where there is none.
mlir::LogicalResult inferMatmul(std::optional<mlir::Location> loc,
                                mlir::RankedTensorType a,
                                mlir::RankedTensorType b,
                                llvm::SmallVectorImpl<mlir::Type> &results);

inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) {
  return tensorType(value).getShape();
}

inline mlir::Type elementOf(mlir::Value value) {
  return tensorType(value).getElementType();
}

/// Bytes of an allocation, rounded as the runtime's allocator does.
inline int64_t alignedBytes(int64_t bytes) { return (bytes + 63) / 64 * 64; }

} // namespace accel::aten

#endif // ACCEL_DIALECTS_ATEN_RULES_H
