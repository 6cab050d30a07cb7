//===- Overwriting.cpp - Operators that write over an argument ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Overwriting.h"

#include <algorithm>
#include <iterator>

namespace accel::plan {

namespace {

// Forms that native_functions.yaml derives (`autogen`) are not among them:
// they make a new tensor and copy it. Those operators have an in-place form.
constexpr OverwritingForm forms[] = {
    {"aten::_log_softmax", "aten::_log_softmax.out", 3, false},
    {"aten::_log_softmax_backward_data", "aten::_log_softmax_backward_data.out",
     4, false},
    {"aten::_softmax", "aten::_softmax.out", 3, false},
    {"aten::_softmax_backward_data", "aten::_softmax_backward_data.out", 4,
     false},
    {"aten::add.Scalar", "aten::add_.Scalar", 2, true},
    {"aten::add.Tensor", "aten::add.out", 3, false},
    {"aten::div.Scalar", "aten::div_.Scalar", 2, true},
    {"aten::div.Tensor", "aten::div.out", 2, false},
    {"aten::exp", "aten::exp.out", 1, false},
    {"aten::gelu", "aten::gelu.out", 2, false},
    {"aten::gelu_backward", "aten::gelu_backward.grad_input", 3, false},
    {"aten::masked_fill.Scalar", "aten::masked_fill_.Scalar", 3, true},
    // The in-place form has the factors the other way round, and its kernels
    // for CPUs round a first factor that is a number to 16 bits.
    {"aten::mul.Scalar", "aten::mul.out", 2, false, true},
    {"aten::mul.Tensor", "aten::mul.out", 2, false},
    {"aten::neg", "aten::neg.out", 1, false},
    {"aten::reciprocal", "aten::reciprocal.out", 1, false},
    {"aten::relu", "aten::relu_", 1, true},
    {"aten::rsqrt", "aten::rsqrt.out", 1, false},
    {"aten::sigmoid", "aten::sigmoid.out", 1, false},
    {"aten::sigmoid_backward", "aten::sigmoid_backward.grad_input", 2, false},
    {"aten::silu", "aten::silu.out", 1, false},
    {"aten::silu_backward", "aten::silu_backward.grad_input", 2, false},
    {"aten::sub.Scalar", "aten::sub_.Scalar", 2, true},
    {"aten::sub.Tensor", "aten::sub.out", 3, false},
    {"aten::tanh", "aten::tanh.out", 1, false},
    {"aten::tanh_backward", "aten::tanh_backward.grad_input", 2, false},
    {"aten::threshold_backward", "aten::threshold_backward.grad_input", 3,
     false},
    {"aten::where.self", "aten::where.self_out", 3, false},
};
static_assert(std::ranges::is_sorted(forms, {}, &OverwritingForm::op));

} // namespace

std::span<const OverwritingForm> overwritingForms() { return forms; }

const OverwritingForm *overwritingForm(std::string_view op) {
  const auto *found =
      std::ranges::lower_bound(forms, op, {}, &OverwritingForm::op);
  return found != std::end(forms) && found->op == op ? found : nullptr;
}

} // namespace accel::plan
