//===- DryGpu.h - A process' GPUs that do not exist -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What the stand-ins for libcudart, the driver, cuBLAS, cuDNN and NCCL share:
// streams, events and memory of the made-up devices, what was queued, and the
// report. They are preloaded under the real libtorch_cuda and the real
// accel-run-cuda.so, so that all host code runs as on a GPU machine. Device
// memory is host memory: with DRY_COMPUTE each operator is computed on the CPU
// over the same bytes (Values.cpp), and collectives exchange data.
//
//   DRY_REPORT=FILE   the report, JSON, of rank R in FILE.R
//   DRY_COMPUTE=1     values; =small: of operators over tensors below 1 MiB
//                     alone. Large blocks are then never touched, and a job of
//                     any size runs with its real allocations
//   DRY_DEVICES=N     devices of the machine (default 8)
//   DRY_MEMORY_GIB=N  of each (default 141)
//   DRY_ALLOCATIONS=FILE  what torch's allocator gives out and takes back, a
//                     line for each
//   DRY_TRACE=N       the report has all that optimizer step N queued
//   DRY_BUSY=1        the devices are behind: an event has not happened before
//                     the host waits for it, however often it asks
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TEST_DRY_DRYGPU_H
#define ACCEL_TEST_DRY_DRYGPU_H

#include "test/dry/HappensBefore.h"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace accel::dry {

/// What a stream was given, for the replay in time (Replay.h).
struct Queued {
  enum Kind { Work, Collective, Record, Wait, HostWait, Send, Receive };
  Kind kind = Work;
  Actor stream = host;
  uint64_t event = 0;  // of Record and Wait
  std::string name;    // kernel's operator, or collective
  std::string place;   // step of a program: "train/12"
  std::string channel; // of Send and Receive, the same on both ranks
};

class DryGpu {
public:
  static DryGpu &get();
  /// Everything below is called under it; operators of the host's threads call
  /// back into the stand-ins.
  std::recursive_mutex mutex;

  // Streams.
  Actor actor(cudaStream_t stream);
  cudaStream_t makeStream(int priority);
  /// The host queues work on a stream; it is counted under `what`.
  Actor enqueue(cudaStream_t stream, const char *what);
  /// A kernel, copy or fill in the operator that is being called.
  Actor launch(cudaStream_t stream, const char *what, const char *kernel);
  void record(cudaEvent_t event, cudaStream_t stream);
  void wait(cudaStream_t stream, cudaEvent_t event);
  void forget(cudaEvent_t event);
  void synchronize(cudaStream_t stream);
  void synchronizeEvent(cudaEvent_t event);
  /// The host has waited for what the event stands for.
  bool hasPassed(cudaEvent_t event) const;
  void synchronizeDevice();
  /// What the process has queued between two events, on whatever streams: the
  /// milliseconds of a clock that is not the host's.
  int64_t queuedBetween(cudaEvent_t from, cudaEvent_t to) const;

  // Memory.
  /// Address space that costs nothing until it is touched; null if the devices
  /// are full. Reserved bytes count.
  void *allocate(size_t bytes);
  void release(void *pointer);
  /// Address space alone, and bytes behind it (expandable segments).
  void *reserve(size_t bytes);
  void unreserve(void *pointer);
  bool take(size_t bytes);
  void give(size_t bytes) { reservedBytes -= bytes; }
  bool isDevice(const void *pointer) const;
  bool isPinned(const void *pointer) const;
  size_t totalBytes() const;
  size_t freeBytes() const { return totalBytes() - reservedBytes; }
  void pin(void *pointer, size_t bytes);
  void unpin(void *pointer);

  // Copies: from pinned memory the bytes must not change until the copy is
  // done, and into it they come no earlier than the host has waited.
  void copy(void *to, const void *from, size_t bytes, cudaStream_t stream);
  void fill(void *to, int value, size_t bytes, cudaStream_t stream);

  // Where the program is (Accesses.cpp).
  void beginPlace(const std::string &text);
  void endPlace();
  /// The innermost one, or nothing.
  std::string place() const { return places.empty() ? "" : places.back(); }

  // What is seen.
  HappensBefore order;
  std::set<int> contexts; // devices
  /// The calling thread's device has a context from now on.
  void context();
  void count(const std::string &what, int64_t n = 1);
  void warn(const std::string &text) { ++warnings[text]; }
  void collective(const std::string &text) { collectives.push_back(text); }
  /// The next one of this process, by the name that its ranks share.
  void communicator(const std::string &id) { communicators.push_back(id); }
  void trace(Queued item);

  /// Written once, at exit.
  void report();

private:
  struct Copy { // not yet known to be done
    Moment moment;
    uint64_t hash = 0; // of the source, from pinned memory
    const void *from = nullptr;
    void *to = nullptr;      // pinned
    std::vector<char> bytes; // that arrive there
    size_t size = 0;
  };
  /// After the host has waited: copies that are done.
  void settle();
  /// What is in pinned memory once copies into it that are queued are done.
  std::vector<char> contents(const void *from, size_t bytes) const;
  /// The host has changed nothing of what copies from [to, to + bytes) read,
  /// and something else comes there: what they read is ordered by `order`.
  void overwrite(const void *to, size_t bytes);

  std::map<cudaStream_t, Actor> streams;
  std::map<uintptr_t, size_t> blocks;
  std::map<uintptr_t, size_t> pinned; // cudaHostAlloc
  size_t reservedBytes = 0, reservedPeak = 0, pinnedBytes = 0, pinnedPeak = 0;
  uintptr_t nextHandle = 0x1000;
  int64_t queued = 0;                       // on all streams
  std::map<uint64_t, int64_t> queuedBefore; // by event, when it was recorded
  std::vector<Copy> copies;
  std::map<std::string, int64_t> warnings;
  std::map<std::string, int64_t> counts; // of the whole run
  std::vector<std::map<std::string, int64_t>> stepCounts;
  std::map<const char *, int64_t> kernels; // launches, by mangled name
  std::vector<std::string> collectives, communicators;
  std::vector<Queued> traced;
  std::vector<std::string> places; // innermost last
  bool reported = false;
};

using Lock = std::lock_guard<std::recursive_mutex>;

/// The calling thread's current device, and whether it has queued work.
extern thread_local int currentDevice;
extern thread_local bool threadQueues;

// Accesses.cpp: the operator that is being called.
/// Reads and writes of the operator are accesses of the launch.
void attachAccesses(Actor stream);
/// Its name, or "".
const std::string &currentOperator();
/// What its kernel has counted for the host, if its result's size depends on
/// values.
std::optional<int64_t> countForHost();
/// Values of every operator are computed.
bool computesValues();
/// Values of tensors of at most so many bytes are.
bool computesValues(size_t bytes);
/// Poisons what the allocator hands out and takes back, once it exists.
void watchAllocator();

} // namespace accel::dry

#endif // ACCEL_TEST_DRY_DRYGPU_H
