//===- IndexChecks.h - Indices that kernels trust ---------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Some of ATen's CPU kernels read and write where their index tensors say,
// without a look at the bounds: a plan or data with a wrong index would end the
// process by a signal, or change other memory. Their indices are checked before
// the call. Operators that check themselves, as most do, have no entry here.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_EXECUTE_INDEXCHECKS_H
#define ACCEL_RUNTIME_EXECUTE_INDEXCHECKS_H

#include <ATen/core/stack.h>

#include <string>

namespace accel::run {

/// Given an operator's arguments, throws std::out_of_range where an index is
/// out of bounds.
using IndexCheck = void (*)(const torch::jit::Stack &arguments);

/// Of "aten::embedding_dense_backward", without overload; null for an operator
/// that needs none.
IndexCheck indexCheckOf(const std::string &name);

} // namespace accel::run

#endif // ACCEL_RUNTIME_EXECUTE_INDEXCHECKS_H
