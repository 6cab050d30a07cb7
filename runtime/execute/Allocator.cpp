//===- Allocator.cpp - The CPU memory of a rank ---------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/execute/Allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>
#include <set>
#include <sys/mman.h>
#include <unistd.h>
#include <unordered_map>
#include <vector>

namespace accel::run {

namespace {
constexpr size_t alignment = 64;
/// Requests up to this size come from bins of equal blocks: the many small
/// ones (scalars, statistics) would break up the large ranges.
constexpr size_t smallLimit = 4096;
constexpr size_t smallChunk = 256 * 1024;
constexpr size_t segmentBytes = size_t(256) << 20;

thread_local int foreignScopes = 0;

size_t roundUp(size_t n, size_t to) { return (n + to - 1) / to * to; }
} // namespace

struct Block {
  char *address = nullptr;
  size_t size = 0;
  bool free = false;
  bool small = false;
  bool foreign = false;
  Block *before = nullptr, *after = nullptr; // by address, in one segment
};

struct Allocator::State {
  mutable std::mutex mutex;
  std::atomic<int64_t> current{0};
  std::atomic<int64_t> peak{0};
  std::atomic<int64_t> foreign{0};

  struct BySize {
    bool operator()(const Block *a, const Block *b) const {
      return a->size != b->size ? a->size < b->size : a->address < b->address;
    }
  };
  std::set<Block *, BySize> freeBlocks;
  std::vector<Block *> bins[smallLimit / alignment + 1];
  std::deque<Block> blocks; // stable addresses
  std::vector<Block *> spare;
  std::unordered_map<void *, Block *> live; // by address
  int64_t highWater = 0;
  struct Segment {
    char *begin;
    size_t size;
    char *top;
  };
  std::vector<Segment> segments;

  Block *newBlock() {
    if (spare.empty()) {
      blocks.emplace_back();
      return &blocks.back();
    }
    Block *block = spare.back();
    spare.pop_back();
    *block = Block();
    return block;
  }
  bool addSegment(size_t size);
  Block *takeLarge(size_t size);
  Block *takeSmall(size_t size);
  void giveLarge(Block *block);
};

/// Reserves addresses; pages become real when they are first written.
bool Allocator::State::addSegment(size_t size) {
  void *memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return false;
  Block *block = newBlock();
  block->address = static_cast<char *>(memory);
  block->size = size;
  block->free = true;
  freeBlocks.insert(block);
  segments.push_back({block->address, size, block->address});
  return true;
}

Block *Allocator::State::takeLarge(size_t size) {
  Block key;
  key.size = size;
  auto found = freeBlocks.lower_bound(&key);
  if (found == freeBlocks.end()) {
    if (!addSegment(std::max(segmentBytes, roundUp(size, 4096))))
      return nullptr;
    found = freeBlocks.lower_bound(&key);
  }
  Block *block = *found;
  freeBlocks.erase(found);
  if (block->size > size) {
    Block *rest = newBlock();
    rest->address = block->address + size;
    rest->size = block->size - size;
    rest->free = true;
    rest->before = block;
    rest->after = block->after;
    if (rest->after)
      rest->after->before = rest;
    block->after = rest;
    block->size = size;
    freeBlocks.insert(rest);
  }
  block->free = false;
  for (Segment &segment : segments)
    if (block->address >= segment.begin &&
        block->address < segment.begin + segment.size) {
      char *end = block->address + size;
      if (end > segment.top) {
        highWater += end - segment.top;
        segment.top = end;
      }
      break;
    }
  return block;
}

void Allocator::State::giveLarge(Block *block) {
  block->free = true;
  auto absorb = [&](Block *left, Block *right) {
    left->size += right->size;
    left->after = right->after;
    if (left->after)
      left->after->before = left;
    spare.push_back(right);
  };
  if (Block *next = block->after; next && next->free) {
    freeBlocks.erase(next);
    absorb(block, next);
  }
  if (Block *previous = block->before; previous && previous->free) {
    freeBlocks.erase(previous);
    absorb(previous, block);
    block = previous;
  }
  freeBlocks.insert(block);
}

Block *Allocator::State::takeSmall(size_t size) {
  std::vector<Block *> &bin = bins[size / alignment];
  if (bin.empty()) {
    const size_t count = std::clamp<size_t>(smallChunk / 16 / size, 4, 64);
    Block *chunk = takeLarge(count * size);
    if (!chunk)
      return nullptr;
    for (size_t i = count; i-- > 0;) {
      Block *block = newBlock();
      block->address = chunk->address + i * size;
      block->size = size;
      block->small = true;
      bin.push_back(block);
    }
  }
  Block *block = bin.back();
  bin.pop_back();
  return block;
}

Allocator::Allocator() : state(new State) {
  // As much address space as the machine has memory, or as little as the
  // limits of this process allow; more segments follow when it is used up.
  size_t size =
      roundUp(size_t(sysconf(_SC_PHYS_PAGES)) * size_t(sysconf(_SC_PAGESIZE)),
              segmentBytes);
  while (size > segmentBytes && !state->addSegment(size))
    size = roundUp(size / 2, segmentBytes);
}

Allocator &Allocator::get() {
  static Allocator *allocator = new Allocator; // outlives every tensor
  return *allocator;
}

void *Allocator::data(const Block *block) { return block->address; }

Block *Allocator::allocate(size_t bytes) {
  const size_t size = roundUp(bytes, alignment);
  Block *block;
  {
    std::lock_guard<std::mutex> lock(state->mutex);
    block = bytes > size         ? nullptr
            : size <= smallLimit ? state->takeSmall(size)
                                 : state->takeLarge(size);
    if (block)
      state->live[block->address] = block;
  }
  TORCH_CHECK_WITH(OutOfMemoryError, block, "out of memory: ", bytes,
                   " bytes asked for, ", current(), " in use");
  block->foreign = foreignScopes > 0;
  if (block->foreign)
    state->foreign.fetch_add(size);
  const int64_t now = state->current.fetch_add(size) + size;
  int64_t peak = state->peak.load(std::memory_order_relaxed);
  while (now > peak && !state->peak.compare_exchange_weak(peak, now)) {
  }
  return block;
}

void Allocator::release(Block *block) {
  state->current.fetch_sub(block->size);
  if (block->foreign)
    state->foreign.fetch_sub(block->size);
  std::lock_guard<std::mutex> lock(state->mutex);
  state->live.erase(block->address);
  if (block->small)
    state->bins[block->size / alignment].push_back(block);
  else
    state->giveLarge(block);
}

void Allocator::release(void *address) {
  Block *block = nullptr;
  {
    std::lock_guard<std::mutex> lock(state->mutex);
    auto it = state->live.find(address);
    TORCH_CHECK(it != state->live.end(), "free of memory that is not ours");
    block = it->second;
  }
  release(block);
}

MemoryCount Allocator::count() const {
  return {state->current.load(), state->peak.load()};
}
int64_t Allocator::current() const {
  return state->current.load(std::memory_order_relaxed);
}
int64_t Allocator::foreign() const {
  return state->foreign.load(std::memory_order_relaxed);
}
Allocator::Foreign::Foreign() { ++foreignScopes; }
Allocator::Foreign::~Foreign() { --foreignScopes; }
void Allocator::resetPeak() { state->peak.store(state->current.load()); }

int64_t Allocator::highWater() const {
  std::lock_guard<std::mutex> lock(state->mutex);
  return state->highWater;
}

void Allocator::trim() {
  std::lock_guard<std::mutex> lock(state->mutex);
  const uintptr_t page = sysconf(_SC_PAGESIZE);
  for (Block *block : state->freeBlocks) {
    uintptr_t begin = roundUp(uintptr_t(block->address), page);
    uintptr_t end = (uintptr_t(block->address) + block->size) / page * page;
    for (const State::Segment &segment : state->segments)
      if (block->address >= segment.begin &&
          block->address < segment.begin + segment.size)
        end = std::min(end, roundUp(uintptr_t(segment.top), page));
    if (begin < end)
      madvise(reinterpret_cast<void *>(begin), end - begin, MADV_DONTNEED);
  }
}

namespace {
void deleteAddress(void *address) {
  if (address)
    Allocator::get().release(address);
}

/// The allocator as c10 sees it.
struct TensorAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device cpu(c10::DeviceType::CPU);
    if (bytes == 0)
      return {nullptr, nullptr, &deleteAddress, cpu};
    // oneDNN allocates raw, which needs the address itself as the context.
    void *address = accel::run::Allocator::data(
        accel::run::Allocator::get().allocate(bytes));
    return {address, address, &deleteAddress, cpu};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &deleteAddress; }
  void copy_data(void *to, const void *from, size_t count) const override {
    std::memcpy(to, from, count);
  }
};
} // namespace

void Allocator::install() {
  get();
  static TensorAllocator allocator;
  c10::SetCPUAllocator(&allocator, /*priority=*/100);
}

} // namespace accel::run
