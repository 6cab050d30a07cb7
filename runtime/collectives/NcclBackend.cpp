//===- NcclBackend.cpp - NCCL process groups ------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/collectives/Backend.h"

#include <c10/cuda/CUDAFunctions.h>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

namespace accel::run {

/// Bound to the current device and connected at once: a communicator takes
/// memory of its own, which must not be found missing within the first step,
/// after torch's allocator has filled the device.
c10::intrusive_ptr<c10d::Backend>
makeNccl(const c10::intrusive_ptr<c10d::Store> &store,
         const GroupDescription &group, std::chrono::milliseconds timeout) {
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = timeout;
  options->group_name = group.name;
  options->global_ranks_in_group.assign(group.members.begin(),
                                        group.members.end());
  auto backend = c10::make_intrusive<c10d::ProcessGroupNCCL>(
      store, group.rank, group.size(), std::move(options));
  backend->setGroupUid(group.name);
  backend->setGroupDesc(group.name);
  const c10::Device device(c10::DeviceType::CUDA, c10::cuda::current_device());
  backend->setBoundDeviceId(device);
  backend->eagerConnectSingleDevice(device);
  return backend;
}

} // namespace accel::run
