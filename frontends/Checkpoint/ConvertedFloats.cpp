//===- ConvertedFloats.cpp - Floats of another width ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/ConvertedFloats.h"
#include "frontends/Checkpoint/Checkpoint.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace accel::checkpoint {

namespace {

template <typename T> T load(const char *bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

float floatOfBfloat16(uint16_t bits) {
  return std::bit_cast<float>(uint32_t(bits) << 16);
}

uint16_t bfloat16Of(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value))
    return 0x7fc0;
  return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float floatOfFloat16(uint16_t half) {
  const uint32_t sign = uint32_t(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 31, fraction = half & 0x3ff;
  if (exponent == 0) { // zero or subnormal
    const float value = std::ldexp(float(fraction), -24);
    return sign ? -value : value;
  }
  const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

uint16_t float16Of(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = (bits >> 16) & 0x8000;
  uint32_t rest = bits & 0x7fffffff;
  if (std::isnan(value))
    return sign | 0x7e00;
  if (rest >= 0x477ff000) // 65520 and more round to infinity
    return sign | 0x7c00;
  if (rest < 0x38800000) // below 2^-14: a multiple of 2^-24
    return sign | uint16_t(std::nearbyint(std::ldexp(std::fabs(value), 24)));
  rest += 0xfff + ((rest >> 13) & 1);
  return sign | uint16_t((rest - 0x38000000) >> 13);
}

} // namespace

bool isConvertedFloat(std::string_view dtype) {
  return dtype == "float64" || dtype == "float32" || dtype == "float16" ||
         dtype == "bfloat16";
}

FloatConverter::FloatConverter(std::string_view from, std::string_view to)
    : from(from), to(to), width(size_t(elementBytes(from))) {}

bool FloatConverter::convert(const char *element) {
  double exact;
  if (from == "float64")
    exact = load<double>(element);
  else if (from == "float32")
    exact = load<float>(element);
  else if (from == "float16")
    exact = floatOfFloat16(load<uint16_t>(element));
  else
    exact = floatOfBfloat16(load<uint16_t>(element));
  // torch, too, goes from float64 to 16 bits by float32.
  const auto value = static_cast<float>(exact);
  float result = value;
  if (to == "float32") {
    converted.append(reinterpret_cast<const char *>(&value), sizeof value);
  } else {
    const bool half = to == "float16";
    const uint16_t bits = half ? float16Of(value) : bfloat16Of(value);
    converted.append(reinterpret_cast<const char *>(&bits), sizeof bits);
    result = half ? floatOfFloat16(bits) : floatOfBfloat16(bits);
  }
  if (!std::isinf(result) || std::isinf(exact))
    return true;
  beyond = exact;
  return false;
}

bool FloatConverter::take(std::string_view bytes,
                          const std::function<bool(std::string_view)> &next) {
  converted.clear();
  if (!pending.empty()) {
    const size_t missing = std::min(width - pending.size(), bytes.size());
    pending += bytes.substr(0, missing);
    bytes.remove_prefix(missing);
    if (pending.size() < width)
      return true;
    if (!convert(pending.data()))
      return false;
    pending.clear();
  }
  for (; bytes.size() >= width; bytes.remove_prefix(width))
    if (!convert(bytes.data()))
      return false;
  pending = bytes;
  return next(converted);
}

} // namespace accel::checkpoint
