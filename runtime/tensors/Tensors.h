//===- Tensors.h - Plan types as LibTorch's ---------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_TENSORS_TENSORS_H
#define ACCEL_RUNTIME_TENSORS_TENSORS_H

#include "runtime/plan/Plan.h"

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

namespace accel::run {

/// No element of the plan's types is missing in LibTorch.
c10::ScalarType scalarType(plan::DType dtype);

/// A contiguous tensor of `shape` that starts `offset` elements into
/// `storage`. It stays valid when the storage's memory is exchanged.
at::Tensor viewOf(const c10::Storage &storage, plan::DType dtype,
                  int64_t offset, c10::IntArrayRef shape);

/// A 0-d tensor whose memory is not counted by the allocator, so that step
/// counters and learning rates stay out of the byte-exact account. Lives as
/// long as the process.
at::Tensor hostScalar(double value, c10::ScalarType type);

} // namespace accel::run

#endif // ACCEL_RUNTIME_TENSORS_TENSORS_H
