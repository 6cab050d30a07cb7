//===- CudaDevice.cpp - Streams and memory of a CUDA device ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/collectives/CudaModule.h"
#include "runtime/execute/Device.h"

#include <ATen/Context.h>
#include <c10/core/Event.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <deque>

namespace accel::run {

namespace {

namespace caching = c10::cuda::CUDACachingAllocator;
constexpr auto aggregate =
    static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);

class CudaDevice final : public Device {
public:
  explicit CudaDevice(int index)
      : index(index), compute(c10::cuda::getStreamFromPool(false, index)),
        gather(c10::cuda::getStreamFromPool(true, index)),
        reduce(c10::cuda::getStreamFromPool(true, index)) {
    c10::cuda::set_device(index);
    c10::cuda::setCurrentCUDAStream(compute);
  }

  c10::Device device() const override {
    return c10::Device(c10::DeviceType::CUDA, index);
  }
  c10::DataPtr allocate(size_t bytes) override {
    return caching::get()->allocate(bytes);
  }
  MemoryCount memory() const override {
    auto stats = caching::getDeviceStats(index).requested_bytes[aggregate];
    return {stats.current, stats.peak};
  }
  int64_t ownBytes() const override { return memory().current; }
  void resetPeak() override { caching::resetPeakStats(index); }

  void enter(plan::Stream role) override {
    c10::cuda::CUDAStream stream = role == plan::Stream::Gather   ? gather
                                   : role == plan::Stream::Reduce ? reduce
                                                                  : compute;
    ready.record(compute.unwrap());
    ready.block(stream.unwrap());
    c10::cuda::setCurrentCUDAStream(stream);
  }
  void leave(int timepoint) override {
    while (static_cast<size_t>(timepoint) >= events.size())
      events.emplace_back(c10::DeviceType::CUDA);
    events[timepoint].record(c10::cuda::getCurrentCUDAStream(index).unwrap());
    c10::cuda::setCurrentCUDAStream(compute);
  }
  void await(int timepoint) override {
    events[timepoint].block(compute.unwrap());
  }
  void synchronize() override { c10::cuda::device_synchronize(); }

private:
  c10::DeviceIndex index;
  c10::cuda::CUDAStream compute, gather, reduce;
  c10::Event ready{c10::DeviceType::CUDA};
  std::deque<c10::Event> events; // by timepoint, reused every step
};

std::unique_ptr<Device> makeCudaDevice(int localRank, std::string &error) {
  const int count = c10::cuda::device_count();
  if (count == 0) {
    error = "the plan is for CUDA devices, and this machine has none";
    return nullptr;
  }
  at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
  // More ranks than devices share them (NCCL_MULTI_RANK_GPU_ENABLE=1).
  return std::make_unique<CudaDevice>(localRank % count);
}

} // namespace

c10::intrusive_ptr<c10d::Backend>
makeNccl(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size);

} // namespace accel::run

/// What accel-run looks up in this module.
extern "C" const accel::run::CudaModule accelCudaModule = {
    accel::run::makeCudaDevice, accel::run::makeNccl};
