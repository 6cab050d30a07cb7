//===- Operands.h - Operands of instructions that are made ------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_OPERANDS_H
#define ACCEL_RUNTIME_PLAN_OPERANDS_H

#include "runtime/plan/DType.h"
#include "runtime/plan/Functions.h"

namespace accel::plan {

/// The tensor in a slot.
inline Arg tensorArg(int slot) {
  Arg arg;
  arg.kind = Arg::Kind::Tensor;
  arg.slot = slot;
  return arg;
}

/// Elements, for costs.
inline double elementsOf(const std::vector<int64_t> &shape) {
  double n = 1;
  for (int64_t size : shape)
    n *= static_cast<double>(size);
  return n;
}

/// Bytes of what a slot's shape holds, for costs; of a view too.
inline double movedBytesOf(const Slot &slot) {
  return elementsOf(slot.shape) * static_cast<double>(itemSize(slot.dtype));
}

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_OPERANDS_H
