//===- LintTables.cpp - What lint prints beside findings ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Report/LintTables.h"

#include <algorithm>
#include <nlohmann/json.hpp>

using namespace accel;
using Json = nlohmann::ordered_json;

static std::string dumped(const Json &json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

static Json orNull(const std::string &text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

/// An array with one object a line.
static std::string lines(const Json &array) {
  std::string out = "[";
  for (const Json &item : array)
    out += (out.size() == 1 ? "\n  " : ",\n  ") + dumped(item);
  return out + (array.empty() ? "]" : "\n]");
}

//===----------------------------------------------------------------------===//
// Effective values
//===----------------------------------------------------------------------===//

static const char *originName(const EffectiveValue &v) {
  if (v.ignored)
    return "ignored";
  constexpr const char *names[] = {"default", "written", "derived"};
  return names[static_cast<int>(v.origin)];
}

static size_t width(const std::string &text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string accel::renderEffective(const AccelerateConfig &config) {
  constexpr size_t limit = 40;
  std::vector<std::array<std::string, 4>> rows;
  rows.push_back({"key", "asked", "effective", "why"});
  for (const EffectiveValue &v : config.effective)
    rows.push_back({printable(v.key, 200), v.asked.empty() ? "-" : v.asked,
                    v.effective, v.why});
  size_t widths[3] = {};
  for (const auto &row : rows)
    for (size_t i = 0; i < 3; ++i)
      widths[i] = std::max(widths[i],
                           std::min(width(row[i]), i == 0 ? 2 * limit : limit));
  std::string out;
  for (const auto &row : rows) {
    std::string line;
    for (size_t i = 0; i < 3; ++i) {
      line += row[i];
      size_t used = width(row[i]);
      line.append(used < widths[i] ? widths[i] - used + 2 : 2, ' ');
    }
    line += row[3];
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string accel::renderEffectiveJson(const AccelerateConfig &config) {
  Json array = Json::array();
  for (const EffectiveValue &v : config.effective)
    array.push_back({{"key", v.key},
                     {"asked", orNull(v.asked)},
                     {"effective", v.effective},
                     {"why", orNull(v.why)},
                     {"origin", originName(v)},
                     {"line", std::max(v.at.line, 1)},
                     {"column", std::max(v.at.column, 1)}});
  return lines(array);
}

//===----------------------------------------------------------------------===//
// Environment
//===----------------------------------------------------------------------===//

/// The value in single quotes, where a shell needs them.
static std::string quoted(const std::string &value) {
  bool plain =
      !value.empty() && std::all_of(value.begin(), value.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               (c >= '0' && c <= '9') ||
               std::string_view("_-+=./:,@%").find(c) != std::string_view::npos;
      });
  if (plain)
    return value;
  std::string out = "'";
  for (char c : value)
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string accel::renderEnvironment(const LaunchEnvironment &launch) {
  if (!launch.refused.empty())
    return "# launch stops: " + printable(launch.refused, 400) + "\n";
  std::string out;
  for (const EnvironmentVariable &v : launch.variables) {
    if (!v.value)
      out += "# " + v.name + ": " + printable(v.when, 200) + "\n";
    else if (!v.when.empty())
      out += "# " + v.when + ": " + v.name + "=" + quoted(*v.value) + "\n";
    else
      out += v.name + "=" + quoted(*v.value) + "\n";
  }
  return out;
}

std::string accel::renderEnvironmentJson(const LaunchEnvironment &launch) {
  Json variables = Json::array();
  for (const EnvironmentVariable &v : launch.variables)
    variables.push_back({{"name", v.name},
                         {"value", v.value ? Json(*v.value) : Json(nullptr)},
                         {"key", orNull(v.key)},
                         {"line", std::max(v.line, 1)},
                         {"column", std::max(v.column, 1)},
                         {"when", orNull(v.when)}});
  return "{\"launcher\": " + dumped(toString(launch.launcher)) +
         ", \"refused\": " + dumped(orNull(launch.refused)) +
         ", \"variables\": " + lines(variables) + "}";
}
