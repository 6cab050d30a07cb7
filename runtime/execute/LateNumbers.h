//===- LateNumbers.h - Numbers that the host reads later --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_EXECUTE_LATENUMBERS_H
#define ACCEL_RUNTIME_EXECUTE_LATENUMBERS_H

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <optional>
#include <vector>

namespace accel::run {

/// The values that a tensor has when what is queued on the current stream by
/// now is done. The copy is queued; only `get` waits.
class LateNumbers {
public:
  /// `values`: f64, one-dimensional, on any device.
  explicit LateNumbers(const at::Tensor &values);
  std::vector<double> get() const;

private:
  at::Tensor copy; // pinned where the values are on a GPU
  std::optional<c10::Event> done;
};

} // namespace accel::run

#endif // ACCEL_RUNTIME_EXECUTE_LATENUMBERS_H
