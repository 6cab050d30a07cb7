//===- HostCopies.cpp - Small tensors of a GPU that the host reads --------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/execute/HostCopies.h"

#include "runtime/execute/Allocator.h"

namespace accel::run {

at::Tensor HostCopies::of(const at::Tensor &tensor) {
  if (tensor.is_cpu())
    return tensor;
  std::erase_if(copies, [](const Copy &copy) { return copy.tensor.expired(); });
  for (const Copy &copy : copies)
    if (copy.tensor.lock().get() == tensor.unsafeGetTensorImpl())
      return copy.host;
  Allocator::Foreign libraries;
  copies.push_back(
      {c10::weak_intrusive_ptr<c10::TensorImpl>(tensor.getIntrusivePtr()),
       tensor.cpu()});
  return copies.back().host;
}

} // namespace accel::run
