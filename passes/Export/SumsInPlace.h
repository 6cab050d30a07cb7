//===- SumsInPlace.h - Matmuls that are added to a sum ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The gradient of a value that several matmuls read is a sum of matmuls. Where
// nobody else reads the parts, a part is added by the matmul itself to what is
// there (aten::addmm.out): the part is never written, read and added.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_EXPORT_SUMSINPLACE_H
#define ACCEL_PASSES_EXPORT_SUMSINPLACE_H

#include "dialects/Aten/Layout.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel {

class SumsInPlace {
public:
  /// `without`: sums that are computed otherwise.
  void find(mlir::func::FuncOp function, aten::LayoutAnalysis &layout,
            const llvm::DenseSet<mlir::Operation *> &without);

  /// What the matmul is added to, or null.
  mlir::Value sumOf(mlir::Operation *product) const {
    return added.lookup(product);
  }
  /// Of a sum that matmuls are added up to: the part that holds it. Others hold
  /// themselves.
  mlir::Value holderOf(mlir::Value value) const {
    while (mlir::Value holder = holders.lookup(value))
      value = holder;
    return value;
  }
  bool isSum(mlir::Operation *op) const {
    return op->getNumResults() == 1 && holders.contains(op->getResult(0));
  }
  /// A view of a matmul that is added where its sum is.
  bool isView(mlir::Operation *op) const { return views.contains(op); }

private:
  mlir::Operation *makerOf(mlir::Value value) const;
  void fold(mlir::Operation *sum, mlir::Value holder, mlir::Value part,
            aten::LayoutAnalysis &layout);

  llvm::DenseMap<mlir::Operation *, mlir::Value> added;
  llvm::DenseMap<mlir::Value, mlir::Value> holders; // by result of a sum
  llvm::DenseSet<mlir::Operation *> views;
};

} // namespace accel

#endif // ACCEL_PASSES_EXPORT_SUMSINPLACE_H
