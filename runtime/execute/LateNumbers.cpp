//===- LateNumbers.cpp - Numbers that the host reads later ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/execute/LateNumbers.h"

#include "runtime/collectives/Progress.h"

#include <ATen/ops/empty.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace accel::run {

LateNumbers::LateNumbers(const at::Tensor &values) {
  const c10::Device device = values.device();
  copy = at::empty(
      values.sizes(),
      at::TensorOptions(values.scalar_type()).pinned_memory(!device.is_cpu()));
  copy.copy_(values, /*non_blocking=*/true);
  if (device.is_cpu())
    return;
  done.emplace(device.type());
  done->record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
}

std::vector<double> LateNumbers::get() const {
  if (done) {
    Progress::Waiting waiting;
    done->synchronize();
  }
  const double *data = copy.const_data_ptr<double>();
  return {data, data + copy.numel()};
}

} // namespace accel::run
