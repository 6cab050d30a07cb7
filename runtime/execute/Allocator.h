//===- Allocator.h - The CPU memory of a rank -------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Every CPU tensor of accel-run lives here: requested bytes, aligned to 64,
// are counted (that is what the plan predicts), and memory that was touched
// once is kept, so that a step that repeats takes no page faults.
//
// One large range of addresses is reserved at the start and handed out best
// fit, lowest address first; neighbours are merged when freed. Exact-size free
// lists would be simpler, but their idle blocks add up over sizes that never
// live together; here a step's resident memory is its peak plus what best fit
// loses at it.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_EXECUTE_ALLOCATOR_H
#define ACCEL_RUNTIME_EXECUTE_ALLOCATOR_H

#include <cstddef>
#include <cstdint>

namespace accel::run {

/// A block of memory; opaque, owned by the allocator until `release`.
struct Block;

/// Counters, in bytes of 64-byte aligned requests.
struct MemoryCount {
  int64_t current = 0;
  int64_t peak = 0; // since the last resetPeak
};

class Allocator {
public:
  /// The process's allocator. `install` makes it c10's CPU allocator; call it
  /// before the first tensor.
  static Allocator &get();
  static void install();

  /// Throws std::bad_alloc-like c10::Error when the system has no more.
  /// `bytes` must not be 0.
  Block *allocate(size_t bytes);
  void release(Block *block);
  /// The same by address, for whoever keeps nothing else (c10's raw_allocate).
  void release(void *address);
  static void *data(const Block *block);

  MemoryCount count() const;
  /// Bytes in use now; cheap enough for every instruction.
  int64_t current() const;
  /// Of these, the ones that others than the executor hold (see Foreign).
  int64_t foreign() const;

  /// While one lives, what its thread allocates is a library's own: counted in
  /// the total, and not among the rank's own buffers. Gloo's reduce-scatter
  /// clones its input, and a worker thread drops it when it likes.
  class Foreign {
  public:
    Foreign();
    ~Foreign();
    Foreign(const Foreign &) = delete;
  };
  /// Makes `current` the peak again.
  void resetPeak();
  /// Gives the pages of free memory back to the system (after loading).
  void trim();
  /// Address space below the highest byte ever used, of all segments.
  int64_t highWater() const;

private:
  Allocator();
  struct State;
  State *state;
};

} // namespace accel::run

#endif // ACCEL_RUNTIME_EXECUTE_ALLOCATOR_H
