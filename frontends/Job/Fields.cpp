//===- Fields.cpp - Strict access to a mapping ----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Job/Fields.h"
#include "frontends/Diagnostics/Regex.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>

using namespace accel;

std::string accel::resolvePath(const std::string &file,
                               const std::string &path) {
  std::filesystem::path p(path);
  if (p.is_absolute())
    return path;
  std::filesystem::path folder = std::filesystem::path(file).parent_path();
  return (folder / p).lexically_normal().string();
}

Location Fields::locate(const char *key) const {
  const yaml::Entry *entry = find(key);
  yaml::Mark at = entry ? entry->value->range.begin : node.range.begin;
  return {file, at.line, at.column};
}

void Fields::report(Severity severity, const char *code, const char *key,
                    const std::string &message, const std::string &hint,
                    bool atKey) const {
  Diagnostic d;
  d.severity = severity;
  d.code = code;
  d.file = file;
  d.key = printable(keyPath(key), 200);
  d.message = message;
  d.hint = hint;
  d.line = node.range.begin.line;
  d.column = node.range.begin.column;
  if (const yaml::Entry *entry = find(key)) {
    const yaml::Node &value = *entry->value;
    bool whole = value.isScalar() && !value.text.empty() && !atKey;
    const yaml::Range &range = whole ? value.range : entry->key->range;
    d.line = range.begin.line;
    d.column = range.begin.column;
    if (range.end.line == range.begin.line)
      d.endColumn = range.end.column;
  }
  engine.report(std::move(d));
}

void Fields::errorHere(const char *code, const std::string &message,
                       const std::string &hint) const {
  Diagnostic d;
  d.code = code;
  d.file = file;
  d.key = path;
  d.message = message;
  d.hint = hint;
  d.line = node.range.begin.line;
  d.column = node.range.begin.column;
  engine.report(std::move(d));
}

void Fields::checkKeys(const std::vector<std::string> &known) const {
  for (const yaml::Entry &entry : node.entries) {
    const yaml::Node &key = *entry.key;
    if (key.isString() &&
        std::find(known.begin(), known.end(), key.text) != known.end())
      continue;
    Diagnostic d;
    d.code = key.isString() ? "unknown-key" : "invalid-key";
    d.file = file;
    d.key = printable(keyPath(key.text), 200);
    d.line = key.range.begin.line;
    d.column = key.range.begin.column;
    if (key.range.end.line == d.line)
      d.endColumn = key.range.end.column;
    if (key.isString()) {
      d.message = "unknown key '" + printable(key.text) + "'" +
                  (path.empty() ? "" : " in " + path);
      d.hint = didYouMean(key.text, known);
    } else {
      d.message = std::string("keys must be strings, this is ") +
                  yaml::describe(key.kind);
    }
    if (d.hint.empty() && known.size() <= 12) {
      d.hint = "known keys are";
      for (const std::string &name : known)
        d.hint += (name == known.front() ? " " : ", ") + name;
    }
    engine.report(std::move(d));
  }
}

std::optional<Fields> Fields::mapping(const char *key) const {
  const yaml::Entry *entry = find(key);
  if (!entry)
    return std::nullopt;
  if (!entry->value->isMapping()) {
    error("invalid-value", key,
          keyPath(key) + " must be a mapping, this is " +
              yaml::describe(entry->value->kind));
    return std::nullopt;
  }
  return Fields(file, *entry->value, keyPath(key), engine);
}

std::string accel::shown(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%g", value);
  return buffer;
}

std::optional<int64_t> Fields::readInteger(const char *key, int64_t least,
                                           int64_t most) const {
  const yaml::Entry *entry = find(key);
  if (!entry)
    return std::nullopt;
  const yaml::Node &value = *entry->value;
  if (value.kind == yaml::Kind::Int && !value.huge && value.integer >= least &&
      value.integer <= most)
    return value.integer;
  std::string wanted = least == 1 ? "a positive integer"
                       : least == 0
                           ? "an integer of at least 0"
                           : "an integer of at least " + std::to_string(least);
  bool tooLarge = value.kind == yaml::Kind::Int && value.number > least;
  if (tooLarge)
    wanted = "at most " + std::to_string(most);
  const bool quoted =
      value.isString() && !value.isPlain() && !value.text.empty() &&
      value.text.find_first_not_of("0123456789") == std::string::npos;
  error("invalid-value", key,
        keyPath(key) + " must be " + wanted + ", this is " +
            yaml::shortText(value),
        quoted ? "remove the quotes" : "");
  return std::nullopt;
}

void Fields::integer(const char *key, Setting<int64_t> &setting, int64_t least,
                     int64_t most) const {
  set(key, setting, readInteger(key, least, most));
}

void Fields::integer(const char *key, Setting<std::optional<int64_t>> &setting,
                     int64_t least, int64_t most) const {
  std::optional<int64_t> value = readInteger(key, least, most);
  set(key, setting, value ? std::optional(value) : std::nullopt);
}

std::optional<double> Fields::readNumber(const char *key, double least,
                                         double most) const {
  const yaml::Entry *entry = find(key);
  if (!entry)
    return std::nullopt;
  const yaml::Node &value = *entry->value;
  double number = std::nan("");
  if (value.kind == yaml::Kind::Int || value.kind == yaml::Kind::Float) {
    number = value.number;
  } else if (value.isString() && value.isPlain()) {
    const char *end = value.text.data() + value.text.size();
    auto [stop, bad] = std::from_chars(value.text.data(), end, number);
    if (stop != end || bad != std::errc())
      number = std::nan("");
  }
  if (std::isfinite(number) && number >= least && number <= most)
    return number;
  std::string wanted = "a finite number";
  if (std::isfinite(number))
    wanted =
        number < least ? "at least " + shown(least) : "at most " + shown(most);
  error("invalid-value", key,
        keyPath(key) + " must be " + wanted + ", this is " +
            yaml::shortText(value));
  return std::nullopt;
}

void Fields::number(const char *key, Setting<double> &setting, double least,
                    double most) const {
  set(key, setting, readNumber(key, least, most));
}

void Fields::number(const char *key, Setting<std::optional<double>> &setting,
                    double least, double most) const {
  std::optional<double> value = readNumber(key, least, most);
  set(key, setting, value ? std::optional(value) : std::nullopt);
}

void Fields::flag(const char *key, Setting<bool> &setting) const {
  std::optional<bool> result;
  if (const yaml::Entry *entry = find(key)) {
    if (entry->value->kind == yaml::Kind::Bool)
      result = entry->value->boolean;
    else
      error("invalid-value", key,
            keyPath(key) + " must be true or false, this is " +
                yaml::shortText(*entry->value));
  }
  set(key, setting, result);
}

void Fields::text(const char *key, Setting<std::string> &setting) const {
  std::optional<std::string> result;
  if (const yaml::Entry *entry = find(key)) {
    const yaml::Node &value = *entry->value;
    if (value.isString() && !value.text.empty() &&
        value.text.find('\0') == std::string::npos)
      result = value.text;
    else
      error("invalid-value", key,
            keyPath(key) + " must be a " +
                (value.isString() ? "non-empty " : "") + "string, this is " +
                (value.isString() ? yaml::shortText(value)
                                  : yaml::describe(value.kind)),
            value.kind == yaml::Kind::Bool || value.kind == yaml::Kind::Int
                ? "write it in quotes"
                : "");
  }
  set(key, setting, result);
}

void Fields::choice(const char *key, Setting<std::string> &setting,
                    const std::vector<std::string> &choices) const {
  std::optional<std::string> result;
  if (const yaml::Entry *entry = find(key)) {
    const yaml::Node &value = *entry->value;
    if (value.isString() && std::find(choices.begin(), choices.end(),
                                      value.text) != choices.end()) {
      result = value.text;
    } else {
      error("invalid-value", key,
            keyPath(key) + " must be " + oneOf(choices) + ", this is " +
                yaml::shortText(value),
            value.isString() ? didYouMean(value.text, choices) : "");
    }
  }
  set(key, setting, result);
}

void Fields::regex(const char *key, Setting<std::string> &setting) const {
  text(key, setting);
  if (!setting.written())
    return;
  if (setting->size() > 2000) { // the compiler of regexes recurses
    error("invalid-regex", key, keyPath(key) + " is longer than 2000 bytes");
    setting.value.clear();
    return;
  }
  if (Regex::compile(setting.value))
    return;
  error("invalid-regex", key,
        "\"" + printable(setting.value) + "\" is not a regex",
        "write '.' for any character and '.*' for any text");
  setting.value.clear();
}

void Fields::pathTo(const char *key, Setting<std::string> &setting) const {
  text(key, setting);
  if (setting.written())
    setting.value = resolvePath(file, setting.value);
}
