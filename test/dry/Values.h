//===- Values.h - What a kernel would have computed -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TEST_DRY_VALUES_H
#define ACCEL_TEST_DRY_VALUES_H

#include <ATen/core/ivalue.h>
#include <ATen/core/operator_name.h>

#include <vector>

namespace accel::dry {

/// While one lives, operators of this thread are the test's own: neither
/// recorded nor computed a second time.
class Unobserved {
public:
  Unobserved();
  ~Unobserved();
  static bool active();

private:
  bool before;
};

/// Calls `name` on CPU tensors over the memory of the "device" tensors, and
/// puts its results into `results`. Operators that only a GPU has are computed
/// by their equivalents. Throws where there is none.
void computeOnHost(const c10::OperatorName &name,
                   const std::vector<c10::IValue> &arguments,
                   const std::vector<c10::IValue> &results);

/// True of operators that read on the host how large their result is, which a
/// kernel has counted: `nonzero`, `unique_consecutive`, `repeat_interleave`.
bool sizeDependsOnValues(const c10::OperatorName &name);
/// What that kernel would have counted.
int64_t resultSize(const c10::OperatorName &name,
                   const std::vector<c10::IValue> &arguments);

} // namespace accel::dry

#endif // ACCEL_TEST_DRY_VALUES_H
