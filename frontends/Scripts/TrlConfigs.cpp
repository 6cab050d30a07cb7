//===- TrlConfigs.cpp - Accelerate files that TRL has by name -------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Scripts/TrlConfigs.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>

namespace accel::scripts {
namespace {

const char *const configLines[] = {
#include "frontends/Scripts/trl_accelerate.inc"
};

constexpr std::string_view before = "<TRL's ", after = ".yaml>";

/// Lines are: name, line, key, value; a key of a section has its name before a
/// dot.
std::map<std::string, std::string> readTexts() {
  std::map<std::string, std::string> texts;
  for (std::string_view line : configLines) {
    std::string_view columns[4];
    size_t begin = 0;
    for (std::string_view &column : columns) {
      const size_t end = std::min(line.find('\t', begin), line.size());
      column = line.substr(std::min(begin, line.size()), end - begin);
      begin = end + 1;
    }
    auto [name, place, key, value] = columns;
    long number = 0;
    std::from_chars(place.data(), place.data() + place.size(), number);
    if (name.empty() || name[0] == '#' || number < 1)
      continue;
    std::string &text = texts[std::string(name)];
    const long there = std::count(text.begin(), text.end(), '\n');
    text.append(static_cast<size_t>(std::max(0L, number - 1 - there)), '\n');
    if (const size_t dot = key.find('.'); dot != std::string_view::npos) {
      text += "  ";
      key.remove_prefix(dot + 1);
    }
    text.append(key).append(":");
    if (!value.empty())
      text.append(" ").append(value);
    text += '\n';
  }
  return texts;
}

const std::map<std::string, std::string> &texts() {
  static const std::map<std::string, std::string> all = readTexts();
  return all;
}

/// The name in "<TRL's NAME.yaml>", or "".
std::string nameIn(std::string_view path) {
  if (path.size() <= before.size() + after.size() ||
      !path.starts_with(before) || !path.ends_with(after))
    return "";
  path.remove_prefix(before.size());
  path.remove_suffix(after.size());
  return std::string(path);
}

} // namespace

const std::vector<std::string> &trlConfigNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const auto &[name, text] : texts())
      result.push_back(name);
    return result;
  }();
  return names;
}

std::string trlConfigFile(const std::string &name) {
  return std::string(before) + name + std::string(after);
}

std::optional<std::string> trlConfigText(const std::string &path) {
  auto found = texts().find(nameIn(path));
  return found == texts().end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::string> trlConfigCopy(const std::string &path) {
  const std::string name = nameIn(path);
  if (!texts().count(name))
    return std::nullopt;
  return "a copy of TRL's " + name + ".yaml";
}

} // namespace accel::scripts
