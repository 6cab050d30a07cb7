//===- Format.cpp - Figures as people read them ---------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Text/Format.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace accel {
namespace {

std::string format(const char *pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

/// Three significant digits, at most two decimals.
std::string digits(double value) {
  const double size = std::abs(value);
  return format(size >= 99.95   ? "%.0f"
                : size >= 9.995 ? "%.1f"
                                : "%.2f",
                value);
}

} // namespace

std::string formatBytes(int64_t bytes) {
  double value = static_cast<double>(bytes);
  for (auto [scale, unit] :
       {std::pair<double, const char *>{1024.0 * 1024 * 1024 * 1024, " TiB"},
        {1024.0 * 1024 * 1024, " GiB"},
        {1024.0 * 1024, " MiB"},
        {1024.0, " KiB"}})
    if (value >= scale)
      return digits(value / scale) + unit;
  return format("%.0f B", value);
}

std::string tooMuch(int64_t bytes, int64_t budget) {
  return formatBytes(bytes - budget) + " too much";
}

std::string formatSeconds(double seconds) {
  if (std::abs(seconds) >= 1)
    return digits(seconds) + " s";
  if (std::abs(seconds) >= 1e-3)
    return digits(seconds * 1e3) + " ms";
  return digits(seconds * 1e6) + " us";
}

std::string formatBytesChange(int64_t bytes) {
  return (bytes < 0 ? "-" : "+") + formatBytes(std::abs(bytes));
}
std::string formatSecondsChange(double seconds) {
  return (seconds < 0 ? "-" : "+") + formatSeconds(std::abs(seconds));
}

std::string formatPercent(double share) { return digits(share * 100) + " %"; }

std::string formatGrouped(double value) {
  std::string text = format("%.0f", value);
  for (int i = static_cast<int>(text.size()) - 3; i > 0; i -= 3)
    text.insert(i, ",");
  return text;
}

std::string padRight(std::string text, size_t width) {
  if (text.size() < width)
    text.resize(width, ' ');
  return text;
}
std::string padLeft(std::string text, size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text
                             : text;
}

std::string formatCount(double n) {
  for (auto [scale, unit] :
       {std::pair<double, const char *>{1e9, " B"}, {1e6, " M"}, {1e3, " K"}})
    if (n >= scale)
      return digits(n / scale) + unit;
  return format("%.0f", n);
}

} // namespace accel
