//===- Layout.h - Strides of every value ------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// PyTorch decides the memory layout of a result while it runs; this analysis
// decides it beforehand by the same rules (views, TensorIterator's dimension
// order, the layouts of the attention kernels), so that a `view` is known to
// be legal before a plan is written.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_LAYOUT_H
#define ACCEL_DIALECTS_ATEN_LAYOUT_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

namespace accel::aten {

using Strides = llvm::SmallVector<int64_t, 4>;

class LayoutAnalysis {
public:
  /// Strides in elements. Arguments are contiguous unless the function carries
  /// `aten.strides` for them.
  const Strides &strides(mlir::Value value);
  /// Row-major; strides of dimensions of size 1 do not count.
  bool isContiguous(mlir::Value value);
  /// Strides of `value` seen with another shape; nullopt where that needs a
  /// copy.
  std::optional<Strides> viewStrides(mlir::Value value,
                                     llvm::ArrayRef<int64_t> shape);
  /// Forgets a value that is about to be erased.
  void forget(mlir::Value value) { cache.erase(value); }

private:
  Strides compute(mlir::Value value);
  Strides computePointwise(mlir::Operation *op);
  llvm::DenseMap<mlir::Value, Strides> cache;
};

} // namespace accel::aten

#endif // ACCEL_DIALECTS_ATEN_LAYOUT_H
