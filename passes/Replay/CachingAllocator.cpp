//===- CachingAllocator.cpp - torch's allocator of device memory ----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Replay/CachingAllocator.h"

#include <algorithm>

namespace accel::replay {

namespace {

constexpr int64_t mebi = int64_t(1) << 20;
constexpr int64_t blockBytes = 512;                // kMinBlockSize
constexpr int64_t smallBytes = mebi;               // kSmallSize
constexpr int64_t smallSegment = 2 * mebi;         // kSmallBuffer
constexpr int64_t largeSegment = 20 * mebi;        // kLargeBuffer
constexpr int64_t ownSegment = 10 * mebi;          // kMinLargeAlloc
constexpr int64_t segmentRounding = 2 * mebi;      // kRoundLarge
constexpr int64_t oversizedSlack = 20 * mebi;      // max_non_split_rounding_mb
constexpr int64_t addressSpace = int64_t(1) << 56; // of a growing segment

int64_t roundUp(int64_t bytes, int64_t to) {
  return (bytes + to - 1) / to * to;
}
int64_t roundDown(int64_t bytes, int64_t to) { return bytes / to * to; }

} // namespace

int64_t roundedSize(int64_t bytes, const AllocatorRules &rules) {
  if (bytes < blockBytes)
    return blockBytes;
  const int64_t divisions = rules.powerOfTwoDivisions;
  if (divisions > 1 && bytes > blockBytes * divisions) {
    int64_t power = 1;
    while (power * 2 <= bytes)
      power *= 2;
    if (power == bytes)
      return bytes;
    const int64_t step = power / divisions;
    return step > 0 ? roundUp(bytes, step) : power * 2;
  }
  return roundUp(bytes, blockBytes);
}

int CachingAllocator::poolOf(int64_t size, int stream) {
  const bool small = size <= smallBytes;
  const size_t key = 2 * static_cast<size_t>(stream) + small;
  if (key >= poolIndex.size())
    poolIndex.resize(key + 1, -1);
  if (poolIndex[key] < 0) {
    poolIndex[key] = static_cast<int>(pools.size());
    pools.emplace_back();
    pools.back().small = small;
    pools.back().stream = stream;
  }
  return poolIndex[key];
}

int64_t CachingAllocator::pageBytes(const Pool &pool) const {
  return pool.small ? smallSegment : largeSegment;
}

int CachingAllocator::newBlock() {
  if (!unusedBlocks.empty()) {
    const int block = unusedBlocks.back();
    unusedBlocks.pop_back();
    blocks[block] = Block();
    return block;
  }
  blocks.emplace_back();
  return static_cast<int>(blocks.size()) - 1;
}

void CachingAllocator::addIdle(int block) {
  pools[blocks[block].pool].idle.insert(entryOf(block));
}

void CachingAllocator::removeIdle(int block) {
  pools[blocks[block].pool].idle.erase(entryOf(block));
}

/// What a block of a growing segment could become.
int64_t CachingAllocator::growingSize(int block) const {
  const Block &b = blocks[block];
  const bool grows = b.next >= 0 && !blocks[b.next].mapped;
  return b.bytes + (grows ? blocks[b.next].bytes : 0);
}

/// The smallest idle block that holds `size`, the lowest of these. One that
/// could grow counts as large as it could become.
bool CachingAllocator::findIdle(int64_t size, int pool,
                                IdleBlocks::Position &at) {
  IdleBlocks &idle = pools[pool].idle;
  at = idle.atLeast(size);
  if (!idle.has(at))
    return false;
  if (rules.expandableSegments)
    for (auto next = idle.next(at);
         idle.has(next) &&
         growingSize(idle[next].block) < growingSize(idle[at].block);
         next = idle.next(next))
      at = next;
  const int64_t bytes = idle[at].bytes, most = rules.maxSplitBytes;
  if (most > 0 && size < most && bytes >= most)
    return false;
  return most <= 0 || size < most || bytes < size + oversizedSlack;
}

/// An idle block, of which no more than `size` is taken where it is cut; or -1.
int CachingAllocator::takeIdle(int64_t size, int pool) {
  IdleBlocks &idle = pools[pool].idle;
  IdleBlocks::Position at;
  if (!findIdle(size, pool, at))
    return -1;
  const int block = idle[at].block;
  if (splits(block, size))
    idle.replace(at, entryOf(split(block, size)));
  else
    idle.erase(at);
  return block;
}

bool CachingAllocator::reserve(int64_t bytes, int pool) {
  if (rules.capacityBytes > 0 &&
      stats.reservedBytes + bytes > rules.capacityBytes)
    return false;
  stats.reservedBytes += bytes;
  stats.reservedPeak = std::max(stats.reservedPeak, stats.reservedBytes);
  ++stats.segmentsMade;
  pools[pool].reserved += bytes;
  pools[pool].peak = std::max(pools[pool].peak, pools[pool].reserved);
  return true;
}

void CachingAllocator::giveBack(int64_t bytes, int pool) {
  stats.reservedBytes -= bytes;
  ++stats.segmentsReturned;
  pools[pool].reserved -= bytes;
}

int CachingAllocator::makeSegment(int64_t size, int pool) {
  const int64_t bytes = pools[pool].small   ? smallSegment
                        : size < ownSegment ? largeSegment
                                            : roundUp(size, segmentRounding);
  if (!reserve(bytes, pool))
    return -1;
  const int block = newBlock();
  blocks[block].address = nextAddress;
  blocks[block].bytes = bytes;
  blocks[block].pool = pool;
  nextAddress += bytes;
  return block;
}

/// `block` and what follows it is free for `size` bytes.
bool CachingAllocator::hasRoom(int block, int64_t size) const {
  int64_t bytes = 0;
  for (int b = block; b >= 0 && !blocks[b].used && bytes < size;
       b = blocks[b].next)
    bytes += blocks[b].bytes;
  return bytes >= size;
}

/// The lowest place of the growing segment that could hold `size`.
int CachingAllocator::findGrowing(int64_t size, int pool) {
  for (const auto &[address, found] : pools[pool].unmapped) {
    int block = found;
    const int before = blocks[block].previous;
    if (before >= 0 && !blocks[before].used)
      block = before;
    if (hasRoom(block, size))
      return block;
  }
  const int block = newBlock();
  Block &b = blocks[block];
  b.address = nextAddress;
  b.bytes = addressSpace;
  b.pool = pool;
  b.mapped = false;
  nextAddress += addressSpace;
  pools[pool].unmapped.insert({b.address, block});
  return block;
}

/// Puts memory behind the first `size` bytes of an unmapped block, in whole
/// pages; joins what is idle around it. Returns the idle block, or -1.
int CachingAllocator::mapBlock(int block, int64_t size) {
  const int pool = blocks[block].pool;
  const int64_t bytes =
      std::min(roundUp(size, pageBytes(pools[pool])), blocks[block].bytes);
  if (!reserve(bytes, pool))
    return -1;
  pools[pool].unmapped.erase({blocks[block].address, block});
  if (bytes < blocks[block].bytes) {
    const int rest = newBlock();
    Block &first = blocks[block], &second = blocks[rest];
    second.address = first.address + bytes;
    second.bytes = first.bytes - bytes;
    second.pool = pool;
    second.mapped = false;
    second.previous = block;
    second.next = first.next;
    if (second.next >= 0)
      blocks[second.next].previous = rest;
    first.next = rest;
    first.bytes = bytes;
    pools[pool].unmapped.insert({second.address, rest});
  }
  blocks[block].mapped = true;
  merge(block, blocks[block].previous);
  merge(block, blocks[block].next);
  addIdle(block);
  return block;
}

int CachingAllocator::growSegment(int64_t size, int pool) {
  int block = findGrowing(size, pool);
  if (!blocks[block].mapped) {
    block = mapBlock(block, std::min(blocks[block].bytes, size));
    if (block < 0)
      return -1;
  }
  while (blocks[block].bytes < size) {
    const int next = blocks[block].next;
    block = mapBlock(next,
                     std::min(size - blocks[block].bytes, blocks[next].bytes));
    if (block < 0)
      return -1;
  }
  removeIdle(block);
  return block;
}

bool CachingAllocator::splits(int block, int64_t size) const {
  const int64_t rest = blocks[block].bytes - size;
  if (pools[blocks[block].pool].small || rules.expandableSegments)
    return rest >= blockBytes;
  return (rules.maxSplitBytes == 0 || size < rules.maxSplitBytes) &&
         rest > smallBytes;
}

/// Keeps `size` bytes in `block`; returns the block of the rest.
int CachingAllocator::split(int block, int64_t size) {
  const int rest = newBlock();
  Block &first = blocks[block], &second = blocks[rest];
  second.address = first.address + size;
  second.bytes = first.bytes - size;
  second.pool = first.pool;
  second.previous = block;
  second.next = first.next;
  if (second.next >= 0)
    blocks[second.next].previous = rest;
  first.next = rest;
  first.bytes = size;
  return rest;
}

/// Keeps `size` bytes in `block`; the rest is idle.
void CachingAllocator::cut(int block, int64_t size) {
  addIdle(split(block, size));
}

int CachingAllocator::allocate(int64_t bytes, int stream) {
  const int64_t size = roundedSize(bytes, rules);
  const int pool = poolOf(size, stream);
  int block = takeIdle(size, pool);
  auto fresh = [&] {
    return rules.expandableSegments ? growSegment(size, pool)
                                    : makeSegment(size, pool);
  };
  if (block < 0)
    block = fresh();
  if (block < 0 && rules.maxSplitBytes > 0 && returnOversized(size, pool))
    block = fresh();
  if (block < 0) {
    ++stats.retries;
    returnIdle();
    block = fresh();
  }
  if (block < 0)
    return -1;
  if (splits(block, size))
    cut(block, size);
  blocks[block].used = true;
  stats.allocatedBytes += blocks[block].bytes;
  stats.allocatedPeak = std::max(stats.allocatedPeak, stats.allocatedBytes);
  return block;
}

/// Whether `neighbour` can become a part of the idle `block`.
bool CachingAllocator::joins(int block, int neighbour) const {
  return neighbour >= 0 && !blocks[neighbour].used &&
         blocks[neighbour].mapped == blocks[block].mapped;
}

/// Makes `neighbour` a part of `block`; no list of the pool has it any more.
void CachingAllocator::join(int block, int neighbour) {
  Block &b = blocks[block], &n = blocks[neighbour];
  if (n.address < b.address) {
    b.address = n.address;
    b.previous = n.previous;
    if (b.previous >= 0)
      blocks[b.previous].next = block;
  } else {
    b.next = n.next;
    if (b.next >= 0)
      blocks[b.next].previous = block;
  }
  b.bytes += n.bytes;
  unusedBlocks.push_back(neighbour);
}

/// Joins `neighbour` to the idle `block`, if it is idle and has memory.
void CachingAllocator::merge(int block, int neighbour) {
  if (!joins(block, neighbour))
    return;
  Block &n = blocks[neighbour];
  if (n.mapped)
    removeIdle(neighbour);
  else
    pools[n.pool].unmapped.erase({n.address, neighbour});
  join(block, neighbour);
}

/// The block is idle, with the idle ones around it: in the place of the larger
/// of them, where it is part of one.
void CachingAllocator::release(int block) {
  blocks[block].used = false;
  IdleBlocks &idle = pools[blocks[block].pool].idle;
  IdleBlocks::Entry larger, smaller;
  for (int neighbour : {blocks[block].previous, blocks[block].next}) {
    if (!joins(block, neighbour))
      continue;
    smaller = entryOf(neighbour);
    if (larger < smaller)
      std::swap(larger, smaller);
    join(block, neighbour);
  }
  if (smaller.block >= 0)
    idle.erase(smaller);
  if (larger.block >= 0)
    idle.replace(idle.find(larger), entryOf(block));
  else
    idle.insert(entryOf(block));
}

void CachingAllocator::free(int block) {
  stats.allocatedBytes -= blocks[block].bytes;
  release(block);
}

void CachingAllocator::park(int block) {
  stats.allocatedBytes -= blocks[block].bytes;
}

void CachingAllocator::settle(int block) { release(block); }

/// Whole segments that are idle go back to the device; of growing segments,
/// whole pages.
void CachingAllocator::returnIdle() {
  for (Pool &pool : pools) {
    if (pool.stream == rules.keptStream)
      continue;
    std::vector<int> idle;
    for (auto at = pool.idle.atLeast(0); pool.idle.has(at);
         at = pool.idle.next(at))
      idle.push_back(pool.idle[at].block);
    for (int block : idle) {
      if (rules.expandableSegments) {
        returnPages(block);
        continue;
      }
      if (blocks[block].previous < 0 && blocks[block].next < 0)
        returnSegment(block);
    }
  }
}

void CachingAllocator::returnSegment(int block) {
  removeIdle(block);
  giveBack(blocks[block].bytes, blocks[block].pool);
  unusedBlocks.push_back(block);
}

/// Of blocks that are never cut, one that is large enough, or several from the
/// largest on, so that a segment for `size` finds room.
bool CachingAllocator::returnOversized(int64_t size, int pool) {
  if (rules.expandableSegments || pools[pool].stream == rules.keptStream)
    return false;
  IdleBlocks &idle = pools[pool].idle;
  const int64_t least = std::max(size, rules.maxSplitBytes);
  if (const auto at = idle.atLeast(least); idle.has(at)) {
    returnSegment(idle[at].block);
    return true;
  }
  int64_t returned = 0;
  while (returned < least && !idle.empty() &&
         idle.largest().bytes >= rules.maxSplitBytes) {
    returned += idle.largest().bytes;
    returnSegment(idle.largest().block);
  }
  return returned >= least;
}

void CachingAllocator::returnPages(int block) {
  const int pool = blocks[block].pool;
  const int64_t page = pageBytes(pools[pool]);
  // Addresses of growing segments start on a page.
  const int64_t start = roundDown(blocks[block].address, addressSpace);
  const int64_t from = blocks[block].address - start;
  const int64_t begin = roundUp(from, page);
  const int64_t end = roundDown(from + blocks[block].bytes, page);
  if (begin >= end)
    return;
  removeIdle(block);
  if (begin > from) {
    cut(block, begin - from);
    const int rest = blocks[block].next;
    addIdle(block);
    block = rest;
    removeIdle(block);
  }
  if (blocks[block].bytes > end - begin)
    cut(block, end - begin);
  giveBack(end - begin, pool);
  blocks[block].mapped = false;
  merge(block, blocks[block].previous);
  merge(block, blocks[block].next);
  pools[pool].unmapped.insert({blocks[block].address, block});
}

int64_t CachingAllocator::reservedBytes(int stream) const {
  int64_t bytes = 0;
  for (const Pool &pool : pools)
    if (pool.stream == stream)
      bytes += pool.reserved;
  return bytes;
}

std::vector<std::vector<IdleBlocks::Entry>>
CachingAllocator::idleBlocks() const {
  std::vector<std::vector<IdleBlocks::Entry>> result;
  for (const Pool &pool : pools) {
    std::vector<IdleBlocks::Entry> &entries = result.emplace_back();
    for (auto at = pool.idle.atLeast(0); pool.idle.has(at);
         at = pool.idle.next(at))
      entries.push_back(pool.idle[at]);
  }
  return result;
}

int64_t CachingAllocator::reservedPeak(int stream) const {
  int64_t bytes = 0;
  for (const Pool &pool : pools)
    if (pool.stream == stream)
      bytes += pool.peak;
  return bytes;
}

} // namespace accel::replay
