//===- Permutation.cpp - Shuffling without memory -------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/data/Permutation.h"

namespace accel::run {

namespace {
/// splitmix64's finalizer.
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
constexpr int rounds = 6;
} // namespace

Permutation::Permutation(int64_t n, uint64_t seed, uint64_t epoch)
    : n(n), key(mix(mix(seed) ^ epoch)), halfBits(1) {
  while (halfBits < 31 && (uint64_t(1) << (2 * halfBits)) < this->n)
    ++halfBits;
}

int64_t Permutation::operator()(int64_t i) const {
  const uint64_t mask = (uint64_t(1) << halfBits) - 1;
  uint64_t value = i;
  do {
    uint64_t left = value >> halfBits, right = value & mask;
    for (int round = 0; round < rounds; ++round) {
      const uint64_t next = (left ^ mix(key + right * rounds + round)) & mask;
      left = right;
      right = next;
    }
    value = (left << halfBits) | right;
  } while (value >= n);
  return static_cast<int64_t>(value);
}

} // namespace accel::run
