//===- Dropped.h - Attention that drops weights -----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What the operators of runtime/execute/DroppedAttention.h would compute if
// CUDA's kernels drew as CPUs do, so that losses are those of the plan for
// CPUs; and whether they give the kernels the state of a generator that their
// key stands for.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TEST_DRY_DROPPED_H
#define ACCEL_TEST_DRY_DROPPED_H

#include <ATen/core/ivalue.h>
#include <ATen/core/operator_name.h>

#include <string>
#include <vector>

namespace accel::dry {

/// `name`, without its namespace, of CPU tensors; its results.
std::vector<at::Tensor> droppedAttention(const std::string &name,
                                         const std::vector<c10::IValue> &in);

/// Whether `name` is one of these operators.
bool isDroppedAttention(const c10::OperatorName &name);

/// What is wrong with the state that `name`, a kernel inside of such an
/// operator whose last argument is `drawn`, draws by; or nothing.
std::string stateProblem(const c10::OperatorName &name,
                         const std::vector<c10::IValue> &inputs,
                         const c10::IValue &drawn);

} // namespace accel::dry

#endif // ACCEL_TEST_DRY_DROPPED_H
