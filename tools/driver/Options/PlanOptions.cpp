//===- PlanOptions.cpp - Values of options --------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Options/PlanOptions.h"

#include <cmath>
#include <cstdlib>

int64_t accel::parseBytes(const std::string &text) {
  char *end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !std::isfinite(value) || value <= 0)
    return -1;
  std::string unit = end;
  double scale = 1;
  if (unit == "KiB" || unit == "K")
    scale = 1024.0;
  else if (unit == "MiB" || unit == "M")
    scale = 1024.0 * 1024;
  else if (unit == "GiB" || unit == "G")
    scale = 1024.0 * 1024 * 1024;
  else if (unit == "KB")
    scale = 1e3;
  else if (unit == "MB")
    scale = 1e6;
  else if (unit == "GB")
    scale = 1e9;
  else if (!unit.empty() && unit != "B")
    return -1;
  double bytes = value * scale;
  return bytes < 9e18 ? static_cast<int64_t>(bytes) : -1;
}
