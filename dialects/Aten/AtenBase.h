//===- AtenBase.h - What is said of operators -------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
// Apart from the operators, whose generated declarations take three seconds to
// parse.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_ATENBASE_H
#define ACCEL_DIALECTS_ATEN_ATENBASE_H

#include "mlir/IR/Operation.h"

namespace accel::aten {

/// What kind of work an operation is; policies are written in these terms.
enum class Category {
  View,      // shares its operand's storage
  Pointwise, // element by element, broadcasting included
  Reduction, // sums, means, norms, softmax, losses
  Matmul,
  Attention,
  Memory, // moves or fills data: embedding, cat, clone, arange
  Opaque,
};

enum class Device { Cpu, Cuda };

/// Work of one operation, for the time model.
struct Cost {
  double flops = 0; // floating-point operations; a multiply-add is two
  double bytes = 0; // read and written
};

class BackwardBuilder;
class LayoutAnalysis;

/// Of one value, in elements.
using Strides = llvm::SmallVector<int64_t, 4>;

/// One operation per result element, each operand and result touched once;
/// nothing for a view.
Cost defaultCost(mlir::Operation *op);

/// Operands that a pointwise CPU operator casts to the common type first.
int64_t defaultWorkspaceBytes(mlir::Operation *op, Device device);

/// TensorIterator's order for a pointwise operation, else row-major.
Strides defaultStrides(mlir::Operation *op, LayoutAnalysis &layout,
                       unsigned result);

/// Bytes of a tensor's elements.
int64_t tensorBytes(mlir::Type type);

/// Discardable attributes of this dialect on functions' arguments and results.
constexpr llvm::StringLiteral bindingAttr = "aten.binding";
/// Strides of an argument that is not contiguous, in elements.
constexpr llvm::StringLiteral stridesAttr = "aten.strides";
/// On an argument that keeps its element type when precision is applied.
constexpr llvm::StringLiteral fixedTypeAttr = "aten.fixed_type";
/// SaveAttr of a forward operation in a joint function.
constexpr llvm::StringLiteral saveAttr = "aten.save";

} // namespace accel::aten

#endif // ACCEL_DIALECTS_ATEN_ATENBASE_H
