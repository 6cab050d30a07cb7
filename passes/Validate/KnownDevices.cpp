//===- KnownDevices.cpp - Targets by the names of GPUs --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Validate/RunDescription.h"

#include <cctype>

namespace accel::validate {

namespace {

/// Letters and digits in lower case, so that spellings meet.
std::string squeezed(const std::string &text) {
  std::string result;
  for (char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)))
      result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

} // namespace

std::string targetOfGpu(const std::string &gpu) {
  const std::string key = squeezed(gpu);
  auto has = [&](const char *part) { return key.find(part) != key.npos; };
  if (has("gh200"))
    return ""; // other memory, power and links
  for (const char *name : {"gb300", "gb200", "b300"})
    if (has(name))
      return name;
  if (has("h200"))
    return "h200";
  if (has("b200"))
    return "b200";
  if (has("h100")) {
    if (has("pcie"))
      return "h100-pcie-80gb";
    if (has("nvl"))
      return "";
    return has("96gb") || has("95gb") || has("94gb") || has("500w")
               ? "h100-sxm-96gb"
               : "h100-sxm-80gb";
  }
  if (has("h800"))
    return "";
  if (has("a100"))
    return has("40gb") || has("40g") ? "a100-40gb" : "a100-80gb";
  for (const char *name : {"mi300x", "mi355x"})
    if (has(name))
      return name;
  if (has("l40s"))
    return "l40s";
  if (has("4090"))
    return "rtx4090";
  if (has("a6000"))
    return "a6000";
  return "";
}

} // namespace accel::validate
