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

#include "dialects/Aten/Aten.h"
#include "llvm/ADT/DenseMap.h"

namespace accel::aten {

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
  /// Strides of the result of a TensorIterator over the operands of `op`.
  Strides pointwiseStrides(mlir::Operation *op);
  /// What `preserve_format` keeps: the strides of a tensor that fills its
  /// memory, else the order of its dimensions.
  Strides preservedStrides(mlir::Value value);
  static Strides preservedStrides(llvm::ArrayRef<int64_t> shape,
                                  const Strides &strides);
  /// Whether PyTorch takes the tensor for one of the channels-last format
  /// (`Tensor::suggest_memory_format`).
  bool isChannelsLast(mlir::Value value);
  /// Strides of a contiguous tensor of the channels-last format: channels are
  /// dimension 1 and come last in memory.
  static Strides channelsLast(llvm::ArrayRef<int64_t> shape);
  /// As `pointwiseStrides`, from the operands' strides along the dimensions of
  /// `shape` (0 where an operand broadcasts).
  static Strides iteratorStrides(llvm::ArrayRef<int64_t> shape,
                                 llvm::ArrayRef<Strides> operands);
  /// Forgets a value that is about to be erased.
  void forget(mlir::Value value) { cache.erase(value); }

private:
  Strides compute(mlir::Value value);
  llvm::DenseMap<mlir::Value, Strides> cache;
};

} // namespace accel::aten

#endif // ACCEL_DIALECTS_ATEN_LAYOUT_H
