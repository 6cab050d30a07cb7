//===- KeyTable.h - Keys of accelerate files by version ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Which key exists in which section of a file, since which version of
// accelerate and until which, with its type, values, defaults and what it is
// for: data that the readers, `lint` and the schema share. To print a schema:
//
//   for (const SectionInfo &section : allSections())
//     for (const KeyInfo &key : keysIn(section.name))
//       if (key.in(version)) ... key.type, key.choices, key.defaultIn(version)
//
// Source: the dataclasses of accelerate/commands/config/config_args.py, the
// parser of accelerate/commands/launch.py, the questionnaire of
// accelerate/commands/config/cluster.py and the plugins of
// accelerate/utils/dataclasses.py, of every release from 0.11 to 1.15.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_ACCELERATE_KEYTABLE_H
#define ACCEL_FRONTENDS_ACCELERATE_KEYTABLE_H

#include <optional>
#include <span>
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
/// "1.15".
std::string toString(AccelerateVersion version);

/// _prepare_cp of accelerate 1.12 returns before it does anything: ranks of
/// cp_size train the same sequences whole (accelerate#3856, PR 3867).
constexpr bool skipsContextParallelism(AccelerateVersion version) {
  return version >= AccelerateVersion{1, 12} &&
         version < AccelerateVersion{1, 13};
}

/// The versions that the table covers.
inline constexpr AccelerateVersion oldestAccelerate{0, 11};
inline constexpr AccelerateVersion newestAccelerate{1, 15};
/// Releases of torch that plans can be of.
inline constexpr AccelerateVersion oldestTorch{2, 0};
inline constexpr AccelerateVersion newestTorch{2, 15};
/// "Still there": later than any version.
inline constexpr AccelerateVersion neverAccelerate{99, 0};

/// What a value is. Nothing in Accelerate checks these; they are what its code
/// can work with.
enum class ValueType {
  String,
  Boolean,
  Integer,
  Number,     // an integer or a fraction
  Choice,     // one of `choices`
  StringList, // a YAML list of strings
  BoolTriple, // a YAML list of three booleans
  Mapping,    // a section, or free key: value pairs
};
/// "string", "boolean", ...
const char *toString(ValueType type);

struct EnumValue {
  const char *value;
  const char *description;
  AccelerateVersion since = {0, 2};
  AccelerateVersion until = neverAccelerate; // first version without it
  bool in(AccelerateVersion v) const { return since <= v && v < until; }
};

struct EnumInfo {
  const char *name; // "sharding strategy": for messages
  std::span<const EnumValue> values;
  bool ignoreCase = false;
  /// The number of a value (from 1, by order) may stand for it.
  bool numbered = false;
  /// Values beyond this list are accepted too.
  bool open = false;
  /// The values are integers, which may also be written in quotes.
  bool integers = false;
};

/// Whose default applies when a key is not written.
enum class DefaultOwner {
  Loader,   // the dataclass that a file is loaded into
  Launcher, // the command line of `accelerate launch`
  Plugin    // the plugin in every rank, since launch exports nothing
};
/// "the file's loader", "accelerate launch", "the plugin".
const char *toString(DefaultOwner owner);

struct DefaultValue {
  const char *value = nullptr; // YAML text; null: this entry is unused
  DefaultOwner owner = DefaultOwner::Launcher;
  AccelerateVersion since = {0, 2};
  AccelerateVersion until = neverAccelerate;
};

struct KeyRules {
  /// null means the same as no line at all; else null breaks something.
  bool nullable = false;
  /// From this version on launch never looks at the key in a file.
  AccelerateVersion unreadSince = neverAccelerate;
  /// The key that is read in its place, if this one is a misnomer that the
  /// questionnaire itself wrote, or a former name; else null.
  const char *instead = nullptr;
  /// Smallest integer that makes sense; empty: any.
  std::optional<int> minimum = std::nullopt;
  /// Before this version launch never looked at the key in a file.
  AccelerateVersion readSince = {0, 0};
};

struct KeyInfo {
  const char *section; // "" is the top level
  const char *name;    // canonical: with the section's prefix
  AccelerateVersion since;
  AccelerateVersion until; // first version without it
  ValueType type = ValueType::String;
  const char *description = ""; // one sentence, no full stop
  const EnumInfo *choices = nullptr;
  /// In order of versions; most keys have one or none.
  DefaultValue defaults[3] = {};
  KeyRules rules = {};

  bool in(AccelerateVersion v) const { return since <= v && v < until; }
  /// Exists, and somebody reads it.
  bool readIn(AccelerateVersion v) const {
    return in(v) && rules.readSince <= v && v < rules.unreadSince;
  }
  /// The default in this version, or null if the key is simply unset.
  const DefaultValue *defaultIn(AccelerateVersion v) const;
};

struct SectionInfo {
  const char *name; // "" is the top level
  AccelerateVersion since;
  AccelerateVersion until;
  const char *description;
  /// "fsdp_" for fsdp_config, where `accelerate launch` adds the prefix itself;
  /// empty for sections whose keys it takes as they are.
  const char *impliedPrefix = "";
  /// The prefix that every key of a section has ("parallelism_config_"), or "".
  const char *requiredPrefix = "";
  /// The distributed_type under which the section is read; null: any.
  const char *distributedType = nullptr;
  bool in(AccelerateVersion v) const { return since <= v && v < until; }
};

/// The name under which the table keeps the top-level keys of files with
/// compute_environment AMAZON_SAGEMAKER; the name "" has those of
/// LOCAL_MACHINE.
inline constexpr const char *sagemakerSection = "sagemaker";

/// Every section: the top level first, SageMaker's top level last.
std::span<const SectionInfo> allSections();
/// The section, of any version, or null.
const SectionInfo *findSection(std::string_view name);
/// Every key of a section, of any version, in the table's order.
std::span<const KeyInfo> keysIn(std::string_view section);
/// Every key.
std::span<const KeyInfo> allKeys();

/// The key, of any version, or null.
const KeyInfo *findKey(std::string_view section, std::string_view name);
/// Names in a section of this version that somebody may read.
std::vector<std::string> keysOf(std::string_view section, AccelerateVersion v);
/// The section that has a key of this (canonical) name, or null.
const KeyInfo *findInSections(std::string_view name, AccelerateVersion v);
/// The key of any section that `name`, prefix and all, is a misspelling of; or
/// null.
const KeyInfo *nearestInSections(std::string_view name, AccelerateVersion v);
/// `nearest`, with `prefix` left out of the comparison where a name has it: it
/// says nothing about what was meant.
std::string nearestBehind(std::string_view prefix, std::string_view name,
                          const std::vector<std::string> &candidates);
/// The values of an enumeration in this version.
std::vector<std::string> valuesOf(const EnumInfo &choices, AccelerateVersion v);

std::string_view impliedPrefix(std::string_view section);
std::string_view requiredPrefix(std::string_view section);
/// The key as launch of this version reads it.
std::string canonicalKey(std::string_view section, std::string_view written,
                         AccelerateVersion version = newestAccelerate);

} // namespace accel

#endif // ACCEL_FRONTENDS_ACCELERATE_KEYTABLE_H
