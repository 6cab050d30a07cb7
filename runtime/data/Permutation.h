//===- Permutation.h - Shuffling without memory -----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_DATA_PERMUTATION_H
#define ACCEL_RUNTIME_DATA_PERMUTATION_H

#include <cstdint>

namespace accel::run {

/// A pseudo-random permutation of [0, n): a Feistel network over the next power
/// of four, walked until it is back inside. Takes no memory however large n is,
/// and every rank computes the same.
class Permutation {
public:
  Permutation(int64_t n, uint64_t seed, uint64_t epoch);
  int64_t operator()(int64_t i) const;

private:
  uint64_t n, key;
  int halfBits;
};

} // namespace accel::run

#endif // ACCEL_RUNTIME_DATA_PERMUTATION_H
