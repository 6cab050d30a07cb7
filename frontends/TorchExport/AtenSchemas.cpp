//===- AtenSchemas.cpp - Signatures of ATen's operators -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/TorchExport/AtenSchemas.h"

#include <cstdlib>
#include <string_view>

using namespace accel;
using namespace accel::torchexport;

namespace {

constexpr std::string_view lines[] = {
#include "frontends/TorchExport/AtenSchemas.inc"
};

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ')
    text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ')
    text.remove_suffix(1);
  return text;
}

/// Splits at the commas outside of brackets.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      if (std::string_view part = trim(text.substr(begin, i - begin));
          !part.empty())
        parts.push_back(part);
      begin = i + 1;
    } else if (text[i] == '(' || text[i] == '[') {
      ++depth;
    } else if (text[i] == ')' || text[i] == ']') {
      --depth;
    }
  }
  return parts;
}

/// A default as the signature spells it: None, True, 1, -100, 0., [0, 0],
/// "none", Mean, contiguous_format.
Argument defaultOf(std::string_view text) {
  Argument result;
  if (text == "None")
    return result;
  if (text == "True" || text == "False") {
    result.kind = Argument::Kind::Bool;
    result.integer = text == "True";
    return result;
  }
  if (text.front() == '[') {
    result.kind = Argument::Kind::List;
    for (std::string_view part : split(text.substr(1, text.size() - 2)))
      result.items.push_back(defaultOf(part));
    return result;
  }
  if (text.front() == '"' || text.front() == '\'') {
    result.kind = Argument::Kind::String;
    result.text = text.substr(1, text.size() - 2);
    return result;
  }
  std::string copy(text);
  char *end = nullptr;
  const long long integer = std::strtoll(copy.c_str(), &end, 10);
  if (*end == '\0') {
    result.kind = Argument::Kind::Int;
    result.integer = integer;
    return result;
  }
  const double number = std::strtod(copy.c_str(), &end);
  if (*end == '\0') {
    result.kind = Argument::Kind::Float;
    result.number = number;
    return result;
  }
  result.kind = Argument::Kind::Other;
  result.text = copy;
  return result;
}

AtenSchema parse(std::string_view line) {
  AtenSchema schema;
  const size_t open = line.find('(');
  schema.name = line.substr(0, open);
  const size_t close = line.rfind(") -> ");
  for (std::string_view part : split(line.substr(open + 1, close - open - 1))) {
    if (part == "*")
      continue;
    SchemaParameter parameter;
    if (size_t equals = part.find('='); equals != std::string_view::npos) {
      parameter.hasDefault = true;
      parameter.defaultValue = defaultOf(trim(part.substr(equals + 1)));
      part = trim(part.substr(0, equals));
    }
    const size_t space = part.rfind(' ');
    parameter.name = part.substr(space + 1);
    std::string type(trim(part.substr(0, space)));
    // Alias annotations: Tensor(a!)
    if (size_t alias = type.find('('); alias != std::string::npos) {
      const size_t end = type.find(')', alias);
      parameter.mutated = type.find('!', alias) < end;
      type.erase(alias, end - alias + 1);
    }
    parameter.type = std::move(type);
    schema.parameters.push_back(std::move(parameter));
  }
  return schema;
}

} // namespace

const AtenSchema *torchexport::findSchema(const std::string &fullName) {
  // Only what a model uses is parsed.
  static std::unordered_map<std::string_view, std::string_view> table = [] {
    std::unordered_map<std::string_view, std::string_view> result;
    for (std::string_view line : lines)
      result.emplace(line.substr(0, line.find('(')), line);
    return result;
  }();
  static std::unordered_map<std::string, AtenSchema> parsed;
  std::string name = fullName;
  constexpr std::string_view suffix = ".default";
  if (name.size() > suffix.size() &&
      std::string_view(name).substr(name.size() - suffix.size()) == suffix)
    name.resize(name.size() - suffix.size());
  if (auto found = parsed.find(name); found != parsed.end())
    return &found->second;
  auto line = table.find(name);
  if (line == table.end())
    return nullptr;
  return &parsed.emplace(name, parse(line->second)).first->second;
}
