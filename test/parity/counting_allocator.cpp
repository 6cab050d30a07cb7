//===- counting_allocator.cpp - Live tensor bytes of a Python job ---------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A shared library for the reference runs: replaces c10's CPU allocator by one
// that counts the requested bytes, each request rounded up to 64, on every
// thread. This is how accel-run counts its own.
//
//===----------------------------------------------------------------------===//
#include <c10/core/CPUAllocator.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {
std::atomic<int64_t> live{0}, peak{0};

// In front of each block, to know its size when it is freed; 64 bytes keep the
// alignment that ATen's kernels expect.
constexpr size_t headerBytes = 64;

void add(int64_t bytes) {
  int64_t now = live.fetch_add(bytes) + bytes;
  int64_t seen = peak.load();
  while (now > seen && !peak.compare_exchange_weak(seen, now)) {
  }
}

void release(void *data) {
  if (!data)
    return;
  char *block = static_cast<char *>(data) - headerBytes;
  int64_t bytes;
  std::memcpy(&bytes, block, sizeof(bytes));
  live.fetch_sub(bytes);
  std::free(block);
}

struct CountingAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t size) override {
    if (size == 0)
      return {nullptr, nullptr, &release, c10::Device(c10::DeviceType::CPU)};
    int64_t bytes = static_cast<int64_t>((size + 63) / 64 * 64);
    void *block = nullptr;
    if (posix_memalign(&block, 64, bytes + headerBytes) != 0)
      throw std::bad_alloc();
    std::memcpy(block, &bytes, sizeof(bytes));
    add(bytes);
    void *data = static_cast<char *>(block) + headerBytes;
    return {data, data, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void *dest, const void *src, size_t count) const override {
    std::memcpy(dest, src, count);
  }
};

CountingAllocator allocator;
} // namespace

extern "C" {
/// Must run before the first tensor is made.
void accel_count_install() {
  c10::SetCPUAllocator(&allocator, /*priority=*/100);
}
/// Bytes of all live tensors.
int64_t accel_count_live() { return live.load(); }
/// The most that were live at once since the last reset.
int64_t accel_count_peak() { return peak.load(); }
/// Starts a new peak at what is live now.
void accel_count_reset() { peak.store(live.load()); }
}
