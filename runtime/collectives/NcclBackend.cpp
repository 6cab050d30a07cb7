//===- NcclBackend.cpp - NCCL process groups ------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/collectives/Backend.h"

#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

namespace accel::run {

c10::intrusive_ptr<c10d::Backend>
makeNccl(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size) {
  auto options = c10d::ProcessGroupNCCL::Options::create();
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, size,
                                                     std::move(options));
}

} // namespace accel::run
