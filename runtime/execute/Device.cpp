//===- Device.cpp - Streams and memory of the device ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/execute/Device.h"

#include "runtime/collectives/CudaModule.h"

#include <c10/core/CPUAllocator.h>

namespace accel::run {

namespace {
struct CpuDevice final : Device {
  c10::Device device() const override {
    return c10::Device(c10::DeviceType::CPU);
  }
  c10::DataPtr allocate(size_t bytes, plan::Stream) override {
    return c10::GetCPUAllocator()->allocate(bytes);
  }
  /// Of no use: the device is the host.
  c10::DataPtr allocateHost(size_t bytes) override {
    return Device::allocate(bytes);
  }
  int64_t hostBytes() const override { return 0; }
  MemoryCount memory() const override { return Allocator::get().count(); }
  int64_t ownBytes() const override {
    return Allocator::get().current() - Allocator::get().foreign();
  }
  void resetPeak() override { Allocator::get().resetPeak(); }
  int64_t reservedPeak() const override { return 0; }
  int64_t allocatedPeak() const override { return 0; }
  /// Scalars of CPUs are not counted in the first place (hostScalar).
  void discount(int64_t) override {}
  int mark() override {
    marks.push_back(hostSeconds());
    return static_cast<int>(marks.size()) - 1;
  }
  void resolve(InstructionTimes &times) override {
    for (auto &run : times)
      for (InstructionTime &time : run) {
        time.begin = marks[time.beginMark] - marks.front();
        time.end = marks[time.endMark] - marks.front();
      }
    marks.clear();
  }

private:
  std::vector<double> marks; // seconds
};
} // namespace

std::unique_ptr<Device> makeDevice(const std::string &kind, int localRank,
                                   std::string &error) {
  if (kind == "cpu")
    return std::make_unique<CpuDevice>();
  if (kind == "cuda") {
    const CudaModule *cuda = loadCudaModule(error);
    return cuda ? cuda->makeDevice(localRank, error) : nullptr;
  }
  error =
      "the plan is for device '" + kind + "', which accel-run does not know";
  return nullptr;
}

} // namespace accel::run
