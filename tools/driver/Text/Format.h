//===- Format.h - Figures as people read them -------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_TEXT_FORMAT_H
#define ACCEL_TOOLS_DRIVER_TEXT_FORMAT_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace accel {

/// "1.23 GiB": three significant digits.
std::string formatBytes(int64_t bytes);
/// "12.3 ms".
std::string formatSeconds(double seconds);

/// "1.23 GiB too much": what `bytes` are over the budget.
std::string tooMuch(int64_t bytes, int64_t budget);

/// "-1.2 GiB", "+12.3 ms".
std::string formatBytesChange(int64_t bytes);
std::string formatSecondsChange(double seconds);
/// 0.4072 as "40.7 %".
std::string formatPercent(double share);
/// "8.03 B", "1.2 M": a count of parameters.
std::string formatCount(double n);
/// "1,234,567".
std::string formatGrouped(double value);
std::string padRight(std::string text, size_t width);
std::string padLeft(std::string text, size_t width);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_TEXT_FORMAT_H
