//===- Kernels.h - The runtime's own loops over flat buffers ----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What ATen would do with temporaries (a mixed-type add casts a whole operand
// first) or in several passes over memory. CPU loops work in blocks that stay
// in the cache; on other devices ATen's kernels are used.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_TENSORS_KERNELS_H
#define ACCEL_RUNTIME_TENSORS_KERNELS_H

#include <ATen/core/Tensor.h>

namespace accel::run {

/// `to` (+)= slices[0] + slices[1] + ..., each as long as `to` and all of one
/// dtype. Added in this order, in f32 (f64 for f64), and rounded once.
void sumSlices(const at::Tensor &to, at::ArrayRef<at::Tensor> slices,
               bool accumulate);

/// `into` (0-d f64, same device) += the sum of squares of `values`.
void addSquares(const at::Tensor &values, const at::Tensor &into);

/// values *= factor, a 0-d f64 tensor.
/// Adds the sums of squares of `matrix`' rows to `into`, one f32 each.
void addRowSquares(const at::Tensor &matrix, const at::Tensor &into);

/// The same of its columns.
void addColumnSquares(const at::Tensor &matrix, const at::Tensor &into);

void scaleBy(const at::Tensor &values, const at::Tensor &factor);

} // namespace accel::run

#endif // ACCEL_RUNTIME_TENSORS_KERNELS_H
