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
    return "h800-80gb";
  if (has("h20"))
    return "h20";
  if (has("a800"))
    return has("40g") ? "" : "a800-80gb";
  if (has("a100"))
    return has("40gb") || has("40g") ? "a100-40gb" : "a100-80gb";
  for (const char *name : {"mi300x", "mi355x"})
    if (has(name))
      return name;
  if (has("l40"))
    return has("l40s") ? "l40s" : "";
  // "RTX 6000 Ada Generation", which some call the A6000 Ada; "RTX 6000" alone
  // is of 2018.
  if (has("6000") && has("ada"))
    return "rtx6000-ada";
  const std::pair<const char *, const char *> others[] = {
      {"4090", "rtx4090"}, {"3090ti", ""},     {"3090", "rtx3090"},
      {"a6000", "a6000"},  {"a5000", "a5000"}, {"a10g", "a10g"},
      {"a4000", ""},       {"a40", "a40"}};
  for (const auto &[name, target] : others)
    if (has(name))
      return target;
  return key == "l4" || has("nvidial4") || key.starts_with("l424g") ? "l4" : "";
}

} // namespace accel::validate
