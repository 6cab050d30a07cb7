//===- NcclBackendTest.cpp - What a group of NCCL is made with ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Makes a group of one rank as accel-run does, on a device other than the
// first, and prints what torch then knows of it; test/dry/run.py compares.
//
//===----------------------------------------------------------------------===//
#include "runtime/collectives/Backend.h"

#include <ATen/Context.h>
#include <c10/cuda/CUDAFunctions.h>
#include <nlohmann/json.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include <cstdio>

namespace accel::run {
c10::intrusive_ptr<c10d::Backend>
makeNccl(const c10::intrusive_ptr<c10d::Store> &store,
         const GroupDescription &group, std::chrono::milliseconds timeout);
} // namespace accel::run

int main() {
  constexpr c10::DeviceIndex device = 3;
  c10::cuda::set_device(device);
  at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
  accel::run::GroupDescription group;
  group.name = "gather/dp_shard";
  group.members = {5};
  const auto backend =
      accel::run::makeNccl(c10::make_intrusive<c10d::HashStore>(), group,
                           std::chrono::milliseconds(90000));
  const auto nccl =
      c10::dynamic_intrusive_pointer_cast<c10d::ProcessGroupNCCL>(backend);
  if (!nccl)
    return 1;
  const std::optional<at::Device> bound = nccl->getBoundDeviceId();
  const auto options = nccl->getOptions();
  nlohmann::ordered_json made = {
      {"device", bound ? bound->str() : "none"},
      {"name", nccl->getGroupUid()},
      {"description", nccl->getGroupDesc()},
      {"option_name", options->group_name},
      {"global_ranks", options->global_ranks_in_group},
      {"timeout_ms", options->timeout.count()}};
  std::printf("%s\n", made.dump().c_str());
  return 0;
}
