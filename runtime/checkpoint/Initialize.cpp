//===- Initialize.cpp - First values of parameters ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/Initialize.h"

#include "runtime/checkpoint/Pieces.h"

#include <ATen/Parallel.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cmath>

namespace accel::run {

namespace {
constexpr int64_t chunkElements = int64_t(1) << 20;

/// Philox 4x32-10 (Salmon et al., SC 2011).
void philox(uint64_t key, uint64_t counter, uint32_t (&out)[4]) {
  uint32_t x[4] = {static_cast<uint32_t>(counter),
                   static_cast<uint32_t>(counter >> 32), 0, 0};
  uint32_t k0 = static_cast<uint32_t>(key),
           k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t(0xD2511F53u) * x[0];
    const uint64_t b = uint64_t(0xCD9E8D57u) * x[2];
    const uint32_t next[4] = {
        static_cast<uint32_t>(b >> 32) ^ x[1] ^ k0, static_cast<uint32_t>(b),
        static_cast<uint32_t>(a >> 32) ^ x[3] ^ k1, static_cast<uint32_t>(a)};
    std::copy(next, next + 4, x);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  std::copy(x, x + 4, out);
}
} // namespace

uint64_t initializerKey(int64_t seed, const std::string &fqn) {
  uint64_t hash = 0xcbf29ce484222325u; // FNV-1a
  auto add = [&](unsigned char byte) { hash = (hash ^ byte) * 0x100000001b3u; };
  for (int i = 0; i < 8; ++i)
    add(static_cast<uint64_t>(seed) >> (8 * i));
  for (char c : fqn)
    add(c);
  return hash;
}

void normals(uint64_t key, uint64_t block, float (&values)[4]) {
  uint32_t bits[4];
  philox(key, block, bits);
  for (int pair = 0; pair < 2; ++pair) {
    // Box-Muller; the first is in (0, 1], so that its logarithm is finite.
    const double u = (bits[2 * pair] + 1.0) * 0x1p-32;
    const double v = bits[2 * pair + 1] * 0x1p-32;
    const double radius = std::sqrt(-2.0 * std::log(u));
    values[2 * pair] = static_cast<float>(radius * std::cos(2 * M_PI * v));
    values[2 * pair + 1] = static_cast<float>(radius * std::sin(2 * M_PI * v));
  }
}

void initialize(Executor &executor, int64_t seed) {
  const plan::Plan &plan = executor.plan();
  std::vector<float> buffer;
  for (size_t u = 0; u < plan.units.size(); ++u) {
    UnitStorage &unit = executor.unit(u);
    for (const Piece &piece :
         piecesOf(plan, unit.unit(), unit.shardBegin(), unit.shardEnd())) {
      const plan::Parameter &p = plan.parameters[piece.parameter];
      at::Tensor target =
          unit.shard().narrow(0, piece.offset, piece.end - piece.begin);
      if (p.init.kind == plan::Initializer::Kind::Zeros) {
        target.zero_();
        continue;
      }
      if (p.init.kind == plan::Initializer::Kind::Ones) {
        target.fill_(1.0);
        continue;
      }
      const uint64_t key = initializerKey(seed, p.fqn);
      const float deviation = static_cast<float>(p.init.stddev);
      for (int64_t at = piece.begin; at < piece.end; at += chunkElements) {
        const int64_t n = std::min(chunkElements, piece.end - at);
        buffer.resize(n);
        at::parallel_for(0, n, 1 << 14, [&](int64_t from, int64_t to) {
          float four[4];
          uint64_t block = ~uint64_t(0);
          for (int64_t i = from; i < to; ++i) {
            const uint64_t position = at + i;
            if (position / 4 != block)
              normals(key, block = position / 4, four);
            buffer[i] = deviation * four[position % 4];
          }
        });
        target.narrow(0, at - piece.begin, n)
            .copy_(at::from_blob(buffer.data(), {n},
                                 at::TensorOptions(at::ScalarType::Float)));
      }
    }
  }
}

} // namespace accel::run
