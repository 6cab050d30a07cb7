//===- Initialize.cpp - First values of parameters ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/Initialize.h"

#include "runtime/checkpoint/Pieces.h"
#include "runtime/tensors/Parallel.h"

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

namespace {
/// A number in [0, 1) with 32 random bits.
float uniformAt(uint64_t key, uint64_t position) {
  uint32_t bits[4];
  philox(key, position / 4, bits);
  return static_cast<float>((bits[position % 4] >> 8) * 0x1p-24);
}

/// Draws again until the value is in bounds; the bounds contain the mean, so
/// a draw fails with a probability of at most one half.
float truncatedAt(uint64_t key, uint64_t position, const plan::Initializer &i) {
  constexpr int attempts = 64;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    float four[4];
    normals(key + attempt * 0x9E3779B97F4A7C15u, position / 4, four);
    const double value = i.value * four[position % 4];
    if (value >= i.low && value <= i.high)
      return static_cast<float>(value);
  }
  return 0;
}

float sinusoidAt(int64_t row, int64_t column, int64_t columns, double longest) {
  const int64_t half = columns / 2;
  const auto frequency = static_cast<float>(
      std::exp(-std::log(longest) / static_cast<double>(half - 1) *
               static_cast<double>(column % half)));
  const float angle = static_cast<float>(row) * frequency;
  return column < half ? std::sin(angle) : std::cos(angle);
}

/// Elements [begin, end) of `p`, which start at element `at` of it.
void fill(const plan::Parameter &p, uint64_t key, int64_t at, int64_t begin,
          int64_t end, float *into) {
  using Kind = plan::Initializer::Kind;
  const plan::Initializer &init = p.init;
  const int64_t columns =
      p.shape.empty() ? 1 : p.numel() / std::max<int64_t>(p.shape[0], 1);
  const auto deviation = static_cast<float>(init.value);
  float four[4];
  uint64_t block = ~uint64_t(0);
  for (int64_t i = begin; i < end; ++i) {
    const uint64_t position = at + i;
    switch (init.kind) {
    case Kind::Zeros:
      into[i] = 0;
      break;
    case Kind::Ones:
      into[i] = 1;
      break;
    case Kind::Constant:
      into[i] = deviation;
      break;
    case Kind::Normal:
      if (position / 4 != block)
        normals(key, block = position / 4, four);
      into[i] = deviation * four[position % 4];
      break;
    case Kind::TruncatedNormal:
      into[i] = truncatedAt(key, position, init);
      break;
    case Kind::Uniform:
      into[i] = static_cast<float>(init.low + (init.high - init.low) *
                                                  uniformAt(key, position));
      break;
    case Kind::Sinusoids:
      into[i] = sinusoidAt(at / columns + (at % columns + i) / columns,
                           (at % columns + i) % columns, columns, init.value);
      break;
    }
    if (init.zeroRow >= 0 &&
        static_cast<int64_t>(position) / columns == init.zeroRow)
      into[i] = 0;
  }
}
} // namespace

const std::string &initialName(const plan::Parameter &parameter) {
  for (const std::string &name : parameter.baseNames)
    if (!name.empty())
      return name;
  return parameter.fqn;
}

std::vector<float> initialValues(const plan::Parameter &p, int64_t seed,
                                 int64_t begin, int64_t count) {
  std::vector<float> values(count);
  const uint64_t key = initializerKey(seed, initialName(p));
  // The elements do not depend on who draws them.
  parallelFor(0, count, 1 << 14, [&](int64_t from, int64_t to) {
    fill(p, key, begin, from, to, values.data());
  });
  return values;
}

/// Every element is zero, as shards are before anything is loaded.
static bool isZero(const plan::Initializer &init) {
  using Kind = plan::Initializer::Kind;
  return init.kind == Kind::Zeros ||
         (init.kind == Kind::Normal && init.value == 0);
}

void initialize(Executor &executor, int64_t seed,
                const std::vector<bool> *only) {
  const plan::Plan &plan = executor.plan();
  const Executor::Holding holding(executor);
  for (size_t u = 0; u < plan.units.size(); ++u) {
    if (!executor.holds(static_cast<int>(u)))
      continue;
    UnitStorage &unit = executor.unit(u);
    executor.hold(static_cast<int>(u), /*changes=*/true);
    for (const Piece &piece : piecesOf(plan, unit, executor.groups().mesh())) {
      if (only && !(*only)[piece.parameter])
        continue;
      const plan::Parameter &p = plan.parameters[piece.parameter];
      if (isZero(p.init))
        continue;
      at::Tensor target =
          unit.shard().narrow(0, piece.offset, piece.end - piece.begin);
      for (int64_t at = piece.begin; at < piece.end; at += chunkElements) {
        const int64_t n = std::min(chunkElements, piece.end - at);
        std::vector<float> values = initialValues(p, seed, at, n);
        target.narrow(0, at - piece.begin, n)
            .copy_(at::from_blob(values.data(), {n},
                                 at::TensorOptions(at::ScalarType::Float)));
      }
    }
  }
}

} // namespace accel::run
