//===- CachingAllocator.h - torch's allocator of device memory --*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The rules of torch's caching allocator (c10/cuda/CUDACachingAllocator.cpp,
// c10/core/AllocatorConfig.h of torch 2.15), without a device: which segment
// of memory a tensor is cut from, what becomes of it when it is freed, and so
// how many bytes the process holds of the device. A stream has a pool of small
// blocks (up to 1 MiB, cut from segments of 2 MiB) and one of large blocks
// (segments of 20 MiB for tensors below 10 MiB, else of the tensor's size
// rounded to 2 MiB; or one segment that grows); what is free in one pool serves
// no other.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_REPLAY_CACHINGALLOCATOR_H
#define ACCEL_PASSES_REPLAY_CACHINGALLOCATOR_H

#include "passes/Replay/IdleBlocks.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace accel::replay {

/// What PYTORCH_CUDA_ALLOC_CONF says of these rules, and the device.
struct AllocatorRules {
  bool expandableSegments = false;
  /// Blocks of at least this many bytes are never cut (max_split_size_mb); 0:
  /// all are.
  int64_t maxSplitBytes = 0;
  /// Sizes are rounded up to this fraction of a power of two
  /// (roundup_power2_divisions); 0 or 1: to 512 bytes alone.
  int64_t powerOfTwoDivisions = 0;
  /// What the device has for segments; 0: no end.
  int64_t capacityBytes = 0;
  /// Segments of this stream never go back to the device: a private pool of
  /// CUDA graphs, which have its addresses; -1: those of all do.
  int keptStream = -1;
};

/// Reads a value of PYTORCH_CUDA_ALLOC_CONF ("expandable_segments:True,
/// max_split_size_mb:128") into `rules`. Returns what is wrong with it, or "";
/// `unsupported` is set where torch would take it and this replay cannot.
std::string readAllocatorRules(const std::string &text, AllocatorRules &rules,
                               bool &unsupported);

/// Bytes that a tensor of `bytes` takes.
int64_t roundedSize(int64_t bytes, const AllocatorRules &rules);

struct AllocatorStatistics {
  int64_t allocatedBytes = 0, allocatedPeak = 0; // tensors, rounded
  int64_t reservedBytes = 0, reservedPeak = 0;   // segments
  /// Segments that were asked for, and returned because the device was full.
  int64_t segmentsMade = 0, segmentsReturned = 0;
  /// Times that the device was full and idle segments were returned first.
  int64_t retries = 0;
  bool operator==(const AllocatorStatistics &) const = default;
};

class CachingAllocator {
public:
  explicit CachingAllocator(const AllocatorRules &rules) : rules(rules) {}

  /// A tensor of `bytes` on a stream (0, 1, ...); returns its block, or -1
  /// where the device has no room for it.
  int allocate(int64_t bytes, int stream);
  /// The tensor is gone and its block can serve again.
  void free(int block);
  /// The tensor is gone, but another stream may still use it (record_stream):
  /// its block serves again after `settle`.
  void park(int block);
  void settle(int block);

  /// Of AllocatorRules::capacityBytes; at least what is reserved.
  void setCapacity(int64_t bytes) { rules.capacityBytes = bytes; }

  const AllocatorStatistics &statistics() const { return stats; }
  /// Address and bytes of a tensor's block.
  std::pair<int64_t, int64_t> place(int block) const {
    return {blocks[block].address, blocks[block].bytes};
  }
  /// The idle blocks of each pool, in order.
  std::vector<std::vector<IdleBlocks::Entry>> idleBlocks() const;
  /// Bytes of the segments of one stream.
  int64_t reservedBytes(int stream) const;
  /// The largest that this was.
  int64_t reservedPeak(int stream) const;

private:
  struct Block {
    int64_t address = 0, bytes = 0;
    int previous = -1, next = -1; // in its segment
    int pool = 0;
    bool used = false, mapped = true;
  };
  struct Pool {
    bool small = false;
    int stream = 0;
    IdleBlocks idle;
    /// Parts of a growing segment without memory, by address.
    std::set<std::pair<int64_t, int>> unmapped;
    int64_t reserved = 0, peak = 0;
  };

  int poolOf(int64_t size, int stream);
  int64_t pageBytes(const Pool &pool) const;
  int newBlock();
  IdleBlocks::Entry entryOf(int block) const {
    return {blocks[block].bytes, blocks[block].address, block};
  }
  void addIdle(int block);
  void removeIdle(int block);
  bool findIdle(int64_t size, int pool, IdleBlocks::Position &at);
  int takeIdle(int64_t size, int pool);
  int64_t growingSize(int block) const;
  int makeSegment(int64_t size, int pool);
  int growSegment(int64_t size, int pool);
  bool hasRoom(int block, int64_t size) const;
  int findGrowing(int64_t size, int pool);
  int mapBlock(int block, int64_t size);
  bool splits(int block, int64_t size) const;
  int split(int block, int64_t size);
  void cut(int block, int64_t size);
  bool joins(int block, int neighbour) const;
  void join(int block, int neighbour);
  void merge(int block, int neighbour);
  void release(int block);
  bool reserve(int64_t bytes, int pool);
  void giveBack(int64_t bytes, int pool);
  bool returnOversized(int64_t size, int pool);
  void returnSegment(int block);
  void returnIdle();
  void returnPages(int block);

  AllocatorRules rules;
  AllocatorStatistics stats;
  std::vector<Block> blocks;
  std::vector<int> unusedBlocks;
  std::vector<Pool> pools;
  std::vector<int> poolIndex; // by 2 * stream + small
  int64_t nextAddress = 0;
};

} // namespace accel::replay

#endif // ACCEL_PASSES_REPLAY_CACHINGALLOCATOR_H
