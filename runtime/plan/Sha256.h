//===- Sha256.h - The hash of a plan ----------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_SHA256_H
#define ACCEL_RUNTIME_PLAN_SHA256_H

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace accel::plan {

/// SHA-256 (FIPS 180-4) of the bytes given to `update`.
class Sha256 {
public:
  Sha256();
  void update(std::string_view bytes);
  /// 64 lower-case hexadecimal digits. The object is spent afterwards.
  std::string hexDigest();

private:
  void compress(const unsigned char *block);

  std::array<uint32_t, 8> state;
  std::array<unsigned char, 64> buffer;
  uint64_t length = 0; // bytes so far
};

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_SHA256_H
