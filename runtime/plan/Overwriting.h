//===- Overwriting.h - Operators that write over an argument ----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// ATen has forms of its operators that write their result into a tensor that
// is given. Where an argument is read for the last time, a plan calls such a
// form with the argument itself, so that no new tensor is made. This is only
// right for kernels that read an element for the last time before they write
// it: those of TensorIterator, and softmax's, whose last pass over a row reads
// and writes the same element.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_OVERWRITING_H
#define ACCEL_RUNTIME_PLAN_OVERWRITING_H

#include <cstddef>
#include <span>
#include <string_view>

namespace accel::plan {

struct OverwritingForm {
  std::string_view op;   // "aten::mul.Tensor"
  std::string_view form; // "aten::mul.out", or "aten::mul_.Scalar"
  size_t arguments;      // of `op`, all of them
  /// `form` writes over its first argument; else the tensor that it writes is
  /// its last argument, behind those of `op`.
  bool overFirst;
  /// The second argument of `op` is a number, which `form` takes as a tensor.
  bool wrapsNumber = false;
};

/// All of them, by the name of `op`.
std::span<const OverwritingForm> overwritingForms();

/// That of `op`; null if a plan calls none.
const OverwritingForm *overwritingForm(std::string_view op);

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_OVERWRITING_H
