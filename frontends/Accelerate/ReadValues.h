//===- ReadValues.h - Typed values from text --------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_ACCELERATE_READVALUES_H
#define ACCEL_FRONTENDS_ACCELERATE_READVALUES_H

#include "frontends/Accelerate/Reader.h"

#include <charconv>

namespace accel {

inline std::string showBool(bool value) { return value ? "true" : "false"; }
inline std::string showInteger(int64_t value) { return std::to_string(value); }

/// Whole numbers, also written as 1e9 or 5.0 (JSON has them so).
inline std::optional<int64_t> parseInteger(const std::string &text) {
  int64_t value = 0;
  const char *end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && stop == end && !text.empty())
    return value;
  double number = 0;
  auto [last, bad] = std::from_chars(text.data(), end, number);
  if (bad != std::errc() || last != end || number < -1e18 || number > 1e18 ||
      number != static_cast<double>(static_cast<int64_t>(number)))
    return std::nullopt;
  return static_cast<int64_t>(number);
}

inline std::optional<double> parseNumber(const std::string &text) {
  double value = 0;
  const char *end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || text.empty())
    return std::nullopt;
  return value;
}

/// The shortest text that reads back as the number.
inline std::string showNumber(double value) {
  char buffer[32];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, end};
}

inline std::string upperCase(std::string text) {
  for (char &c : text)
    c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

template <typename T, typename Parse, typename Show>
void AccelerateReader::typed(Setting<T> &setting, const Section &section,
                             const char *name, Parse parse, Show show) {
  const KeyInfo *info = findKey(section.name, name);
  Field field = in(section, name);
  if (*section.name.c_str() == 0 || section.name == sagemakerSection)
    field.key = prefix + name; // a key of the top level
  bool asked = field && !(field.isNull() && info && info->rules.nullable);
  if (asked && info && info->in(version) && !info->readIn(version)) {
    quietlyIgnored(field, "launch does not hand it on");
    asked = false;
  } else if (asked) {
    if (std::optional<T> value = parse(yaml::pythonText(field.value())))
      return written(setting, *value, field, show(*value));
  }
  const DefaultValue *byDefault = info ? info->defaultIn(version) : nullptr;
  std::string text = byDefault ? byDefault->value : "";
  if (text.size() >= 2 && text.front() == '\'')
    text = text.substr(1, text.size() - 2);
  std::optional<T> value = byDefault ? parse(text) : std::nullopt;
  field.entry = nullptr;
  setDefault(setting, value ? *value : T(), field,
             value ? show(*value) : "unset", whyDefault(info, version));
}

} // namespace accel

#endif // ACCEL_FRONTENDS_ACCELERATE_READVALUES_H
