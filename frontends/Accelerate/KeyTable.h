//===- KeyTable.h - Keys of accelerate files by version ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Which key exists in which section of a file, since which version of
// accelerate and until which: data that the readers and the schema share.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_ACCELERATE_KEYTABLE_H
#define ACCEL_FRONTENDS_ACCELERATE_KEYTABLE_H

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace accel {

/// "1.15.0" as 1, 15. Patch levels never changed a key.
struct AccelerateVersion {
  int major = 1, minor = 15;
  auto operator<=>(const AccelerateVersion &) const = default;
};
std::optional<AccelerateVersion> parseAccelerateVersion(std::string_view text);

struct KeyInfo {
  const char *section; // "" is the top level
  const char *name;    // canonical: with the section's prefix
  AccelerateVersion since;
  AccelerateVersion until; // first version without it
  bool in(AccelerateVersion v) const { return since <= v && v < until; }
};

/// The key, of any version, or null.
const KeyInfo *findKey(std::string_view section, std::string_view name);
/// Names in a section of this version.
std::vector<std::string> keysOf(std::string_view section, AccelerateVersion v);
/// The section that has a key of this (canonical) name, or null.
const KeyInfo *findInSections(std::string_view name, AccelerateVersion v);

/// "fsdp_" for fsdp_config, where `accelerate launch` adds the prefix itself;
/// empty for sections whose keys it takes as they are.
std::string_view impliedPrefix(std::string_view section);
/// The prefix that every key of a section has ("parallelism_config_"), or "".
std::string_view requiredPrefix(std::string_view section);
/// The key as launch reads it.
std::string canonicalKey(std::string_view section, std::string_view written);

} // namespace accel

#endif // ACCEL_FRONTENDS_ACCELERATE_KEYTABLE_H
