//===- HostCopies.h - Small tensors of a GPU that the host reads -*- C++
//-*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_EXECUTE_HOSTCOPIES_H
#define ACCEL_RUNTIME_EXECUTE_HOSTCOPIES_H

#include <ATen/core/Tensor.h>

#include <vector>

namespace accel::run {

/// Keeps what the host has read as long as the tensor on the device is there:
/// the host waits for the device once, however many exchanges of the forward
/// and the backward go by the same counts.
class HostCopies {
public:
  /// `tensor` itself where it is on the host. Nothing writes to it after the
  /// first call.
  at::Tensor of(const at::Tensor &tensor);

private:
  struct Copy {
    c10::weak_intrusive_ptr<c10::TensorImpl> tensor;
    at::Tensor host;
  };
  std::vector<Copy> copies;
};

} // namespace accel::run

#endif // ACCEL_RUNTIME_EXECUTE_HOSTCOPIES_H
