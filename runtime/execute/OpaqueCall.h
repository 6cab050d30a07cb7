//===- OpaqueCall.h - Operators that the compiler does not model *- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// An instruction of kind `opaque` is one of two things. The forward is a call
// like any other, whose results are made contiguous and own their memory: that
// is what the plan counts. The backward runs the same operator again under
// LibTorch's autograd and returns the gradients of some of its tensors; no
// autograd graph outlives it. Its arguments are the operator's, then the text
// "backward", the gradients of the floating-point results (a list of tensors)
// and the positions of the wanted tensors among the operator's tensor
// arguments, lists counted element by element.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_EXECUTE_OPAQUECALL_H
#define ACCEL_RUNTIME_EXECUTE_OPAQUECALL_H

#include "runtime/plan/Plan.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <optional>
#include <string>
#include <vector>

namespace accel::run {

/// What the last three arguments of an opaque backward say.
struct OpaqueBackward {
  std::vector<int> gradients; // slots
  std::vector<int64_t> wanted;
};

/// Takes them off `args`; nothing for a forward.
std::optional<OpaqueBackward> takeBackward(std::vector<plan::Arg> &args);

/// Why an operator cannot be an opaque instruction: it writes to an argument,
/// or returns something other than tensors. Empty if it can.
std::string opaqueProblem(const c10::FunctionSchema &schema);

/// Calls `op` with the arguments on `stack` and leaves results that are
/// contiguous and share no memory with an argument.
void callOpaque(const c10::OperatorHandle &op, torch::jit::Stack &stack);

/// Calls `op` with the arguments on `stack` under autograd; the gradients of
/// the tensors at `wanted`, given those of the floating-point results. Where
/// nothing flows, and for a result without history, they are zeros.
std::vector<at::Tensor> callBackward(const c10::OperatorHandle &op,
                                     torch::jit::Stack &stack,
                                     const std::vector<int64_t> &wanted,
                                     const std::vector<at::Tensor> &gradients);

} // namespace accel::run

#endif // ACCEL_RUNTIME_EXECUTE_OPAQUECALL_H
