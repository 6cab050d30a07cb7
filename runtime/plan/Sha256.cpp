//===- Sha256.cpp - The hash of a plan ------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>
#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>
#define ACCEL_SHA_INSTRUCTIONS 1
#endif

namespace accel::plan {

namespace {
constexpr uint32_t roundConstants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
#ifdef ACCEL_SHA_INSTRUCTIONS
bool hasShaInstructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_1) &&
         __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}

/// One block by the processor's own instructions: checkpoints have gigabytes.
__attribute__((target("sha,sse4.1"))) void
compressFast(uint32_t *state, const unsigned char *block) {
  const __m128i order =
      _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
  auto *words = reinterpret_cast<__m128i *>(state);
  // The instructions keep the eight words as ABEF and CDGH.
  __m128i low = _mm_shuffle_epi32(_mm_loadu_si128(words), 0xB1);
  __m128i high = _mm_shuffle_epi32(_mm_loadu_si128(words + 1), 0x1B);
  __m128i abef = _mm_alignr_epi8(low, high, 8);
  __m128i cdgh = _mm_blend_epi16(high, low, 0xF0);
  const __m128i abefBefore = abef, cdghBefore = cdgh;
  __m128i message[4];
  for (int i = 0; i < 4; ++i)
    message[i] = _mm_shuffle_epi8(
        _mm_loadu_si128(reinterpret_cast<const __m128i *>(block) + i), order);
#pragma GCC unroll 16
  for (int group = 0; group < 16; ++group) {
    __m128i &now = message[group % 4];
    if (group >= 4) {
      const __m128i &last = message[(group + 3) % 4];
      const __m128i middle = _mm_alignr_epi8(last, message[(group + 2) % 4], 4);
      now = _mm_sha256msg2_epu32(
          _mm_add_epi32(_mm_sha256msg1_epu32(now, message[(group + 1) % 4]),
                        middle),
          last);
    }
    __m128i sum = _mm_add_epi32(
        now, _mm_loadu_si128(reinterpret_cast<const __m128i *>(roundConstants) +
                             group));
    cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
    abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0E));
  }
  abef = _mm_add_epi32(abef, abefBefore);
  cdgh = _mm_add_epi32(cdgh, cdghBefore);
  low = _mm_shuffle_epi32(abef, 0x1B);
  high = _mm_shuffle_epi32(cdgh, 0xB1);
  _mm_storeu_si128(words, _mm_blend_epi16(low, high, 0xF0));
  _mm_storeu_si128(words + 1, _mm_alignr_epi8(high, low, 8));
}
#endif
} // namespace

Sha256::Sha256()
    : state{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
            0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19},
      buffer{} {}

void Sha256::compress(const unsigned char *block) {
#ifdef ACCEL_SHA_INSTRUCTIONS
  static const bool fast = hasShaInstructions();
  if (fast)
    return compressFast(state.data(), block);
#endif
  uint32_t w[64];
  for (int i = 0; i < 16; ++i)
    w[i] = static_cast<uint32_t>(block[4 * i]) << 24 |
           static_cast<uint32_t>(block[4 * i + 1]) << 16 |
           static_cast<uint32_t>(block[4 * i + 2]) << 8 | block[4 * i + 3];
  for (int i = 16; i < 64; ++i) {
    uint32_t s0 =
        std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    uint32_t s1 =
        std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (int i = 0; i < 64; ++i) {
    uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + roundConstants[i] + w[i];
    uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const uint32_t added[8] = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; ++i)
    state[i] += added[i];
}

void Sha256::update(std::string_view bytes) {
  while (!bytes.empty()) {
    size_t used = length % 64;
    if (used == 0 && bytes.size() >= 64) {
      compress(reinterpret_cast<const unsigned char *>(bytes.data()));
      bytes.remove_prefix(64);
      length += 64;
      continue;
    }
    size_t n = std::min<size_t>(64 - used, bytes.size());
    std::memcpy(buffer.data() + used, bytes.data(), n);
    bytes.remove_prefix(n);
    length += n;
    if (used + n == 64)
      compress(buffer.data());
  }
}

std::string Sha256::hexDigest() {
  const uint64_t bits = length * 8;
  update(std::string_view("\x80", 1));
  static const char zeros[64] = {};
  update(std::string_view(zeros, (120 - length % 64) % 64));
  char size[8];
  for (int i = 0; i < 8; ++i)
    size[i] = static_cast<char>(bits >> (56 - 8 * i));
  update(std::string_view(size, 8));
  std::string text;
  for (uint32_t word : state)
    for (int shift = 28; shift >= 0; shift -= 4)
      text += "0123456789abcdef"[word >> shift & 15];
  return text;
}

} // namespace accel::plan
