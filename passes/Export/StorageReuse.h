//===- StorageReuse.h - Results that take an operand's storage --*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_EXPORT_STORAGEREUSE_H
#define ACCEL_PASSES_EXPORT_STORAGEREUSE_H

#include "dialects/Aten/Layout.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace accel {

/// Which operand the result of an operation may be written over, because the
/// function made its storage and reads it for the last time. Values stay
/// values in the dialect; it is the storage that a plan makes one.
class StorageReuse {
public:
  StorageReuse(mlir::func::FuncOp function, aten::LayoutAnalysis &layout);

  /// The first operand of `op` that has the dtype, shape and row-major layout
  /// of its result, is the whole of a storage that an operation of this
  /// function made, and is not read after `op`, itself or through a view; null
  /// if there is none. What ranks exchange is left alone: it may be under way.
  /// `onlyFirst`: the first operand, or none.
  mlir::Value overwritten(mlir::Operation *op, bool onlyFirst);

private:
  /// The value that `value` is, or is a view of.
  mlir::Value storageOf(mlir::Value value) const;

  aten::LayoutAnalysis &layout;
  llvm::DenseMap<mlir::Value, mlir::Value> views;         // to their storage
  llvm::DenseMap<mlir::Value, mlir::Operation *> lastUse; // of a storage
};

} // namespace accel

#endif // ACCEL_PASSES_EXPORT_STORAGEREUSE_H
