//===- CudaDevice.cpp - Streams and memory of a CUDA device ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/collectives/CudaModule.h"
#include "runtime/execute/Device.h"

#include <ATen/Context.h>
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/Sleep.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <atomic>
#include <cstdlib>
#include <deque>
#include <random>

namespace accel::run {

namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

/// As plans count a request.
int64_t aligned(size_t bytes) {
  constexpr int64_t unit = plan::alignmentBytes;
  return (static_cast<int64_t>(bytes) + unit - 1) / unit * unit;
}

/// Bytes that the process has asked the allocator of one device for, each
/// request rounded up as plans count it. The allocator's own statistics are a
/// copy of two kilobytes under its lock, too much after each instruction.
class RequestedBytes {
public:
  explicit RequestedBytes(c10::DeviceIndex index) : index(index) {
    // What is allocated already; the tracker sees the rest.
    auto counts = caching::getDeviceStats(index).requested_bytes;
    now = most =
        counts[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)]
            .current;
    caching::attachAllocatorTraceTracker(
        [this](const caching::TraceEntry &entry) { note(entry); });
  }
  int64_t current() const { return now.load(std::memory_order_relaxed); }
  int64_t peak() const { return most.load(std::memory_order_relaxed); }
  void resetPeak() { most = now.load(); }
  void discount(int64_t bytes) { now -= bytes; }

private:
  /// Under the allocator's lock.
  void note(const caching::TraceEntry &entry) {
    if (entry.device_ != index)
      return;
    const int64_t bytes = aligned(entry.size_);
    if (entry.action_ == caching::TraceEntry::ALLOC) {
      const int64_t sum = now += bytes;
      if (sum > most)
        most = sum;
    } else if (entry.action_ == caching::TraceEntry::FREE_COMPLETED) {
      now -= bytes;
    }
  }

  const c10::DeviceIndex index;
  std::atomic<int64_t> now{0}, most{0};
};

/// The context of a device is made on the device that is current: another one
/// would get a context, half a GiB, of each rank.
c10::DeviceIndex made(c10::DeviceIndex index) {
  c10::cuda::set_device(index);
  at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
  return index;
}

class CudaDevice final : public Device {
public:
  explicit CudaDevice(c10::DeviceIndex device)
      : index(made(device)),
        compute(c10::cuda::getStreamFromPool(false, index)),
        gather(c10::cuda::getStreamFromPool(true, index)),
        reduce(c10::cuda::getStreamFromPool(true, index)),
        sends(c10::cuda::getStreamFromPool(true, index)),
        hostOut(c10::cuda::getStreamFromPool(true, index)),
        hostIn(c10::cuda::getStreamFromPool(true, index)),
        exchange(c10::cuda::getStreamFromPool(true, index)) {
    c10::cuda::setCurrentCUDAStream(compute);
    // The tracker is called for as long as the allocator lives.
    requested = new RequestedBytes(index);
  }

  c10::Device device() const override {
    return c10::Device(c10::DeviceType::CUDA, index);
  }
  /// The allocator keeps a pool for each stream.
  c10::DataPtr allocate(size_t bytes, plan::Stream role) override {
    const c10::StreamGuard pool(streamOf(role).unwrap());
    return caching::get()->allocate(bytes);
  }
  c10::DataPtr allocateHost(size_t bytes) override {
    pinned += aligned(bytes);
    return at::getHostAllocator(c10::DeviceType::CUDA)->allocate(bytes);
  }
  int64_t hostBytes() const override { return pinned; }
  MemoryCount memory() const override {
    return {requested->current(), requested->peak()};
  }
  int64_t ownBytes() const override { return requested->current(); }
  void resetPeak() override { requested->resetPeak(); }
  int64_t reservedPeak() const override {
    return caching::getDeviceStats(index)
        .reserved_bytes[static_cast<size_t>(
            c10::CachingAllocator::StatType::AGGREGATE)]
        .peak;
  }
  int64_t allocatedPeak() const override {
    return caching::getDeviceStats(index)
        .allocated_bytes[static_cast<size_t>(
            c10::CachingAllocator::StatType::AGGREGATE)]
        .peak;
  }
  void discount(int64_t bytes) override { requested->discount(bytes); }

  void enter(plan::Stream role) override {
    c10::cuda::CUDAStream stream = streamOf(role);
    ready.record(compute.unwrap());
    ready.block(stream.unwrap());
    c10::cuda::setCurrentCUDAStream(stream);
    disturb();
  }
  void enter(plan::Stream role, int timepoint) override {
    c10::cuda::CUDAStream stream = streamOf(role);
    if (timepoint >= 0)
      events[timepoint].block(stream.unwrap());
    c10::cuda::setCurrentCUDAStream(stream);
    disturb();
  }
  void updated(int unit) override {
    while (static_cast<size_t>(unit) >= updates.size())
      updates.emplace_back(c10::DeviceType::CUDA);
    updates[unit].record(compute.unwrap());
  }
  void enterAfterUpdate(plan::Stream role, int unit) override {
    c10::cuda::CUDAStream stream = streamOf(role);
    updates[unit].block(stream.unwrap());
    c10::cuda::setCurrentCUDAStream(stream);
    disturb();
  }
  void releases(plan::Stream role) override {
    c10::cuda::CUDAStream stream = streamOf(role);
    ready.record(compute.unwrap());
    ready.block(stream.unwrap());
  }
  void leave(int timepoint) override {
    while (static_cast<size_t>(timepoint) >= events.size())
      events.emplace_back(c10::DeviceType::CUDA);
    events[timepoint].record(c10::cuda::getCurrentCUDAStream(index).unwrap());
    c10::cuda::setCurrentCUDAStream(compute);
  }
  void await(int timepoint) override {
    events[timepoint].block(compute.unwrap());
    disturb();
  }
  void awaitOnHost(int timepoint) override { events[timepoint].synchronize(); }
  void enterExchange() override {
    ready.record(compute.unwrap());
    ready.block(exchange.unwrap());
    c10::cuda::setCurrentCUDAStream(exchange);
    disturb();
  }
  void awaitExchange(int number) override {
    exchanged[number].block(compute.unwrap());
    disturb();
  }
  void leaveExchange(int number) override {
    while (static_cast<size_t>(number) >= exchanged.size())
      exchanged.emplace_back(c10::DeviceType::CUDA);
    exchanged[number].record(exchange.unwrap());
    c10::cuda::setCurrentCUDAStream(compute);
  }
  void synchronize() override { c10::cuda::device_synchronize(); }

  int mark() override {
    if (marks.empty())
      marksSince = hostSeconds();
    marks.emplace_back(c10::DeviceType::CUDA, c10::EventFlag::BACKEND_DEFAULT);
    marks.back().record(c10::cuda::getCurrentCUDAStream(index).unwrap());
    return static_cast<int>(marks.size()) - 1;
  }
  void resolve(InstructionTimes &times) override {
    synchronize();
    auto seconds = [&](int mark) {
      return mark < 0 ? 0.0 : marks.front().elapsedTime(marks[mark]) / 1000;
    };
    for (auto &run : times)
      for (InstructionTime &time : run) {
        const bool onHost = time.hostBegin > 0;
        time.begin =
            onHost ? time.hostBegin - marksSince : seconds(time.beginMark);
        time.end = onHost ? time.hostEnd - marksSince : seconds(time.endMark);
        time.streamBegin = seconds(time.streamBeginMark);
        time.streamEnd = seconds(time.streamEndMark);
      }
    marks.clear();
  }

private:
  c10::cuda::CUDAStream streamOf(plan::Stream role) const {
    switch (role) {
    case plan::Stream::Gather:
      return gather;
    case plan::Stream::Reduce:
      return reduce;
    case plan::Stream::Send:
      return sends;
    case plan::Stream::HostOut:
      return hostOut;
    case plan::Stream::HostIn:
      return hostIn;
    case plan::Stream::Compute:
    case plan::Stream::Host:
      break;
    }
    return compute;
  }
  /// For tests of the order of streams: ACCEL_RUN_DISTURB=SEED lets the current
  /// one spin for a while, up to about a millisecond.
  void disturb() {
    static const char *seed = std::getenv("ACCEL_RUN_DISTURB");
    static std::minstd_rand random(seed ? std::atoi(seed) : 1);
    if (seed)
      at::cuda::sleep(static_cast<int64_t>(random() % 1500000));
  }

  c10::DeviceIndex index;
  c10::cuda::CUDAStream compute, gather, reduce, sends, hostOut, hostIn,
      exchange;
  RequestedBytes *requested;
  int64_t pinned = 0;
  c10::Event ready{c10::DeviceType::CUDA};
  std::deque<c10::Event> events;    // by timepoint, reused every step
  std::deque<c10::Event> updates;   // by unit, reused every step
  std::deque<c10::Event> exchanged; // by number, reused by every function
  std::deque<c10::Event> marks;     // with times
  double marksSince = 0;            // the host's clock at the first
};

std::unique_ptr<Device> makeCudaDevice(int localRank, std::string &error) {
  const int count = c10::cuda::device_count();
  if (count == 0) {
    error = "the plan is for CUDA devices, and this machine has none";
    return nullptr;
  }
  // More ranks than devices share them (NCCL_MULTI_RANK_GPU_ENABLE=1).
  return std::make_unique<CudaDevice>(
      static_cast<c10::DeviceIndex>(localRank % count));
}

} // namespace

c10::intrusive_ptr<c10d::Backend>
makeNccl(const c10::intrusive_ptr<c10d::Store> &store,
         const GroupDescription &group, std::chrono::milliseconds timeout);

} // namespace accel::run

/// What accel-run looks up in this module.
extern "C" const accel::run::CudaModule accelCudaModule = {
    accel::run::makeCudaDevice, accel::run::makeNccl};
