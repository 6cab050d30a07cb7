//===- Device.h - Streams and memory of the device --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What differs between running a plan on CPUs and on CUDA devices. A plan's
// streams are the device's: the role's stream is made current for a
// collective, and an event recorded on it is the timepoint. On CPUs the
// collective's own threads are the stream, so that nothing is to be done.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_EXECUTE_DEVICE_H
#define ACCEL_RUNTIME_EXECUTE_DEVICE_H

#include "runtime/execute/Allocator.h"
#include "runtime/execute/HostCopies.h"
#include "runtime/execute/InstructionTime.h"
#include "runtime/plan/Plan.h"

#include <c10/core/Allocator.h>
#include <c10/core/Device.h>

#include <memory>
#include <string>

namespace accel::run {

class Device {
public:
  virtual ~Device() = default;

  virtual c10::Device device() const = 0;
  /// Counted memory, aligned to 64 bytes or more. What was of a stream is used
  /// again by the same stream alone.
  virtual c10::DataPtr allocate(size_t bytes, plan::Stream stream) = 0;
  c10::DataPtr allocate(size_t bytes) {
    return allocate(bytes, plan::Stream::Compute);
  }
  /// Pinned memory of the host, not counted as the device's.
  virtual c10::DataPtr allocateHost(size_t bytes) = 0;
  /// What was asked of it.
  virtual int64_t hostBytes() const = 0;
  virtual MemoryCount memory() const = 0;
  /// Of the rank's own buffers: without what libraries hold for themselves.
  virtual int64_t ownBytes() const = 0;
  virtual void resetPeak() = 0;
  /// The most bytes that the allocator has held of the device, used or idle; 0
  /// on CPUs, where they are part of the resident set.
  virtual int64_t reservedPeak() const = 0;
  /// The most bytes that it has given out, with what operators needed inside; 0
  /// on CPUs.
  virtual int64_t allocatedPeak() const = 0;
  /// Bytes that are allocated and in nobody's account: a job's few 0-d tensors,
  /// which plans do not list.
  virtual void discount(int64_t bytes) = 0;

  /// Makes `stream` current; it first waits for what compute has queued.
  virtual void enter(plan::Stream) {}
  /// The same, but it waits for `timepoint` alone; -1: for nothing.
  virtual void enter(plan::Stream, int /*timepoint*/) {}
  /// Notes that compute has queued the update of `unit`.
  virtual void updated(int /*unit*/) {}
  /// As `enter`, but it waits for that update alone.
  virtual void enterAfterUpdate(plan::Stream, int /*unit*/) {}
  /// Lets a stream, whose memory is freed next, wait for what compute has
  /// queued and may read there.
  virtual void releases(plan::Stream) {}
  /// Records `timepoint` on the current stream; compute is current again.
  virtual void leave(int /*timepoint*/) {}
  /// Compute waits for `timepoint`.
  virtual void await(int /*timepoint*/) {}
  /// The host waits for `timepoint`.
  virtual void awaitOnHost(int /*timepoint*/) {}
  /// Makes the stream of exchanges inside of functions current; it first waits
  /// for what compute has queued.
  virtual void enterExchange() {}
  /// Notes that the stream has queued exchange `number`; compute is current
  /// again. A number is free again once it is awaited.
  virtual void leaveExchange(int /*number*/) {}
  /// Compute waits for it.
  virtual void awaitExchange(int /*number*/) {}
  /// Blocks until the device has done everything queued.
  virtual void synchronize() {}

  /// Notes the time at which the current stream gets here; its number.
  virtual int mark() = 0;
  /// Fills in the seconds between the marks of `times`, once the device has
  /// passed them, and forgets all marks. All are since the first mark; the
  /// host's are right where the device was idle then.
  virtual void resolve(InstructionTimes &times) = 0;

  /// What the host has read of the device's tensors.
  HostCopies hostCopies;
};

/// `kind` is a plan's device, "cpu" or "cuda"; local rank i takes device i.
/// Null with a sentence in `error` if there is none.
std::unique_ptr<Device> makeDevice(const std::string &kind, int localRank,
                                   std::string &error);

} // namespace accel::run

#endif // ACCEL_RUNTIME_EXECUTE_DEVICE_H
