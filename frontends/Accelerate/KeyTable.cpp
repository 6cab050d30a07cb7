//===- KeyTable.cpp - Keys of accelerate files by version -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Accelerate/KeyTable.h"

#include "frontends/Accelerate/KeyData.h"
#include "frontends/Diagnostics/Diagnostics.h"

#include <algorithm>
#include <charconv>

using namespace accel;

std::optional<AccelerateVersion>
accel::parseAccelerateVersion(std::string_view text) {
  AccelerateVersion v;
  const char *end = text.data() + text.size();
  auto [dot, error] = std::from_chars(text.data(), end, v.major);
  if (error != std::errc() || dot == end || *dot != '.')
    return std::nullopt;
  auto [rest, second] = std::from_chars(dot + 1, end, v.minor);
  if (second != std::errc() || (rest != end && *rest != '.'))
    return std::nullopt;
  return v;
}

std::string accel::toString(AccelerateVersion version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor);
}

const char *accel::toString(ValueType type) {
  constexpr const char *names[] = {"string",
                                   "boolean",
                                   "integer",
                                   "number",
                                   "choice",
                                   "list of strings",
                                   "list of three booleans",
                                   "mapping"};
  return names[static_cast<int>(type)];
}

const char *accel::toString(DefaultOwner owner) {
  constexpr const char *names[] = {"the file's loader", "accelerate launch",
                                   "the plugin"};
  return names[static_cast<int>(owner)];
}

const DefaultValue *KeyInfo::defaultIn(AccelerateVersion v) const {
  for (const DefaultValue &d : defaults)
    if (d.value && d.since <= v && v < d.until)
      return &d;
  return nullptr;
}

std::span<const SectionInfo> accel::allSections() { return sectionData(); }
std::span<const KeyInfo> accel::allKeys() { return keyData(); }

const SectionInfo *accel::findSection(std::string_view name) {
  for (const SectionInfo &section : allSections())
    if (name == section.name)
      return &section;
  return nullptr;
}

std::span<const KeyInfo> accel::keysIn(std::string_view section) {
  std::span<const KeyInfo> keys = allKeys();
  auto inside = [&](const KeyInfo &key) { return section == key.section; };
  auto begin = std::find_if(keys.begin(), keys.end(), inside);
  auto end = std::find_if_not(begin, keys.end(), inside);
  return {begin, end};
}

const KeyInfo *accel::findKey(std::string_view section, std::string_view name) {
  for (const KeyInfo &key : keysIn(section))
    if (name == key.name)
      return &key;
  return nullptr;
}

std::vector<std::string> accel::keysOf(std::string_view section,
                                       AccelerateVersion v) {
  std::vector<std::string> names;
  for (const KeyInfo &key : keysIn(section))
    // What the questionnaire misspells is no key; what launch drops is one.
    if (key.in(v) && !(key.rules.instead && !key.readIn(v)))
      names.push_back(key.name);
  return names;
}

const KeyInfo *accel::findInSections(std::string_view name,
                                     AccelerateVersion v) {
  for (const KeyInfo &key : allKeys())
    if (*key.section && key.section != std::string_view(sagemakerSection) &&
        name == key.name && key.in(v))
      return &key;
  return nullptr;
}

std::string accel::nearestBehind(std::string_view prefix, std::string_view name,
                                 const std::vector<std::string> &candidates) {
  if (prefix.empty() || !name.starts_with(prefix))
    return nearest(name, candidates);
  std::vector<std::string> rests;
  for (const std::string &candidate : candidates)
    if (candidate.starts_with(prefix))
      rests.push_back(candidate.substr(prefix.size()));
  std::string best = nearest(name.substr(prefix.size()), rests);
  return best.empty() ? best : std::string(prefix) + best;
}

const KeyInfo *accel::nearestInSections(std::string_view name,
                                        AccelerateVersion v) {
  for (const SectionInfo &section : allSections()) {
    std::string_view prefix =
        *section.impliedPrefix ? section.impliedPrefix : section.requiredPrefix;
    if (section.name == std::string_view("deepspeed_config"))
      prefix = "deepspeed_";
    if (prefix.empty() || !section.in(v) || !name.starts_with(prefix))
      continue;
    std::string best = nearestBehind(prefix, name, keysOf(section.name, v));
    if (!best.empty())
      return findKey(section.name, best);
  }
  return nullptr;
}

std::vector<std::string> accel::valuesOf(const EnumInfo &choices,
                                         AccelerateVersion v) {
  std::vector<std::string> values;
  for (const EnumValue &value : choices.values)
    if (value.in(v))
      values.push_back(value.value);
  return values;
}

std::string_view accel::impliedPrefix(std::string_view section) {
  const SectionInfo *info = findSection(section);
  return info ? info->impliedPrefix : "";
}

std::string_view accel::requiredPrefix(std::string_view section) {
  const SectionInfo *info = findSection(section);
  return info ? info->requiredPrefix : "";
}

std::string accel::canonicalKey(std::string_view section,
                                std::string_view written,
                                AccelerateVersion version) {
  std::string_view prefix = impliedPrefix(section);
  bool dynamo = section == "dynamo_config";
  if ((dynamo && version < AccelerateVersion{1, 14}) ||
      version < AccelerateVersion{0, 12})
    prefix = "";
  // Accelerate tests for "fsdp" and "fp8" without the underscore, before 1.5
  // anywhere in the key.
  std::string_view test = prefix;
  if (!dynamo && !test.empty())
    test.remove_suffix(1);
  bool has = version < AccelerateVersion{1, 5}
                 ? written.find(test) != written.npos
                 : written.starts_with(test);
  return has ? std::string(written)
             : std::string(prefix) + std::string(written);
}
