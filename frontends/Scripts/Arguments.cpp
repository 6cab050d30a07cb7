//===- Arguments.cpp - What training scripts may be told ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Scripts/Arguments.h"

#include <algorithm>
#include <array>
#include <unordered_map>

namespace accel::scripts {
namespace {

constexpr int families = 5;

const char *const transformersLines[] = {
#include "frontends/Scripts/transformers.inc"
};
const char *const accelerateLines[] = {
#include "frontends/Scripts/accelerate.inc"
};
const char *const trlLines[] = {
#include "frontends/Scripts/trl.inc"
};
const char *const llamafactoryLines[] = {
#include "frontends/Scripts/llamafactory.inc"
};
const char *const axolotlLines[] = {
#include "frontends/Scripts/axolotl.inc"
};
const char *const meaningLines[] = {
#include "frontends/Scripts/meanings.inc"
};

std::span<const char *const> linesOf(Family family) {
  switch (family) {
  case Family::Transformers:
    return transformersLines;
  case Family::Accelerate:
    return accelerateLines;
  case Family::Trl:
    return trlLines;
  case Family::LlamaFactory:
    return llamafactoryLines;
  case Family::Axolotl:
    return axolotlLines;
  }
  return {};
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(at, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::vector<std::string_view> words(std::string_view text) {
  return text.empty() ? std::vector<std::string_view>() : split(text, ',');
}

ArgumentType typeNamed(std::string_view name) {
  constexpr std::pair<std::string_view, ArgumentType> names[] = {
      {"int", ArgumentType::Int},   {"float", ArgumentType::Float},
      {"bool", ArgumentType::Bool}, {"str", ArgumentType::Text},
      {"list", ArgumentType::List}, {"dict", ArgumentType::Dict}};
  for (const auto &[known, type] : names)
    if (name == known)
      return type;
  return ArgumentType::Any;
}

Arity arityNamed(std::string_view name) {
  return name == "0"   ? Arity::None
         : name == "?" ? Arity::Optional
         : name == "+" ? Arity::Some
         : name == "*" ? Arity::Repeated
         : name == "-" ? Arity::Never
                       : Arity::One;
}

std::vector<ArgumentInfo> parse(Family family) {
  std::vector<ArgumentInfo> result;
  for (std::string_view line : linesOf(family)) {
    if (line.empty() || line[0] == '#')
      continue;
    const std::vector<std::string_view> columns = split(line, '\t');
    if (columns.size() != 6)
      continue;
    ArgumentInfo info;
    info.owner = columns[0];
    info.name = columns[1];
    std::string_view type = columns[2];
    info.nullable = type.ends_with('?');
    if (info.nullable)
      type.remove_suffix(1);
    info.type = typeNamed(type);
    info.arity = arityNamed(columns[3]);
    info.standard = columns[4];
    info.choices = words(columns[5]);
    result.push_back(std::move(info));
  }
  return result;
}

/// Lines are: family, meaning, names, harmless values, text.
std::vector<ArgumentMeaning> parseMeanings() {
  std::vector<ArgumentMeaning> result;
  for (std::string_view line : meaningLines) {
    const std::vector<std::string_view> columns = split(line, '\t');
    if (line.empty() || line[0] == '#' || columns.size() < 3)
      continue;
    ArgumentMeaning meaning;
    for (int i = 0; i < families; ++i)
      if (columns[0] == toString(static_cast<Family>(i)))
        meaning.family = static_cast<Family>(i);
    meaning.meaning = columns[1] == "read"     ? Meaning::Read
                      : columns[1] == "same"   ? Meaning::Same
                      : columns[1] == "none"   ? Meaning::NoEffect
                      : columns[1] == "slight" ? Meaning::Slight
                                               : Meaning::Refused;
    if (columns.size() > 3)
      meaning.harmless = words(columns[3]);
    if (columns.size() > 4)
      meaning.text = columns[4];
    for (std::string_view name : words(columns[2])) {
      meaning.name = name;
      if (meaning.meaning == Meaning::Same) { // written=read
        const size_t equals = name.find('=');
        meaning.name = name.substr(0, equals);
        meaning.text = name.substr(equals + 1);
      }
      result.push_back(meaning);
    }
  }
  return result;
}

/// A key of a family's table.
std::string joined(std::string_view owner, std::string_view name) {
  return std::string(owner) + "." + std::string(name);
}

} // namespace

const char *toString(Family family) {
  constexpr const char *names[families] = {"transformers", "accelerate", "trl",
                                           "llamafactory", "axolotl"};
  return names[static_cast<int>(family)];
}

const char *describe(ArgumentType type) {
  constexpr const char *names[] = {"an integer", "a number", "true or false",
                                   "a string",   "a list",   "a mapping",
                                   "any value"};
  return names[static_cast<int>(type)];
}

std::span<const ArgumentInfo> argumentsOf(Family family) {
  static std::array<std::vector<ArgumentInfo>, families> tables;
  std::vector<ArgumentInfo> &table = tables[static_cast<size_t>(family)];
  if (table.empty())
    table = parse(family);
  return table;
}

const ArgumentInfo *findArgument(Family family, std::string_view owner,
                                 std::string_view name) {
  static std::array<std::unordered_map<std::string, const ArgumentInfo *>,
                    families>
      maps;
  auto &map = maps[static_cast<size_t>(family)];
  if (map.empty())
    for (const ArgumentInfo &info : argumentsOf(family))
      map.try_emplace(joined(info.owner, info.name), &info);
  auto found = map.find(joined(owner, name));
  return found == map.end() ? nullptr : found->second;
}

std::span<const ArgumentMeaning> allMeanings() {
  static const std::vector<ArgumentMeaning> meanings = parseMeanings();
  return meanings;
}

const ArgumentMeaning *meaningOf(Family family, std::string_view name) {
  static const auto map = [] {
    std::unordered_map<std::string, const ArgumentMeaning *> result;
    for (const ArgumentMeaning &meaning : allMeanings())
      result.try_emplace(joined(toString(meaning.family), meaning.name),
                         &meaning);
    return result;
  }();
  auto found = map.find(joined(toString(family), name));
  return found == map.end() ? nullptr : found->second;
}

} // namespace accel::scripts
