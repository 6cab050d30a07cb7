//===- Values.cpp - What the words behind an option mean ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/options/Values.h"

#include "frontends/Diagnostics/Diagnostics.h"

#include <charconv>
#include <cstdlib>

namespace accel {
namespace {

constexpr std::pair<const char *, double> byteUnits[] = {
    {"", 1},
    {"B", 1},
    {"K", 1024.0},
    {"M", 1024.0 * 1024},
    {"G", 1024.0 * 1024 * 1024},
    {"KiB", 1024.0},
    {"MiB", 1024.0 * 1024},
    {"GiB", 1024.0 * 1024 * 1024},
    {"T", 1024.0 * 1024 * 1024 * 1024},
    {"TiB", 1024.0 * 1024 * 1024 * 1024},
    {"KB", 1e3},
    {"MB", 1e6},
    {"GB", 1e9},
    {"TB", 1e12}};

} // namespace

bool parseInteger(std::string_view text, int64_t &value) {
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

bool parseBytes(std::string_view text, int64_t &bytes) {
  double number = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc())
    return false;
  const std::string_view unit = text.substr(end - text.data());
  for (auto [name, scale] : byteUnits)
    if (unit == name) {
      const double scaled = number * scale;
      if (!(scaled >= 1 && scaled < 9e18))
        return false;
      bytes = static_cast<int64_t>(scaled);
      return true;
    }
  return false;
}

std::string expectedOneOf(const std::string &word,
                          const std::vector<std::string> &names) {
  const std::string text = "expected " + oneOf(names);
  const std::string hint = didYouMean(word, names);
  return hint.empty() ? text : text + "; " + hint;
}

ValueKind<ReportFormat> formatValue() {
  return choiceValue<ReportFormat>(
      {{"text", ReportFormat::Text}, {"json", ReportFormat::Json}});
}

ValueKind<std::string> textValue(std::string placeholder) {
  std::string expected = "expected " + placeholder;
  return {std::move(placeholder),
          [expected](const std::string &word, std::string &value) {
            value = word;
            return word.empty() ? expected : std::string();
          }};
}

ValueKind<int64_t> countValue(std::string placeholder, int64_t least,
                              int64_t most) {
  return {
      std::move(placeholder),
      [least, most](const std::string &word, int64_t &value) -> std::string {
        int64_t number = 0;
        const bool read = parseInteger(word, number);
        if (read && number >= least && number <= most) {
          value = number;
          return "";
        }
        if (read && number > most)
          return "expected at most " + std::to_string(most);
        return least == 1
                   ? "expected a positive integer"
                   : "expected an integer of at least " + std::to_string(least);
      }};
}

ValueKind<double> percentValue() {
  return {"PERCENT", [](const std::string &word, double &value) {
            char *end = nullptr;
            const double percent = std::strtod(word.c_str(), &end);
            const std::string rest = end;
            if (end == word.c_str() || (!rest.empty() && rest != "%") ||
                !(percent >= 50 && percent <= 99.5))
              return std::string("expected a percentage from 50 to 99.5");
            value = percent / 100;
            return std::string();
          }};
}

ValueKind<int64_t> bytesValue(std::string example, bool mayBeZero) {
  std::string expected =
      "expected bytes such as " + example + (mayBeZero ? ", or 0" : "");
  return {"BYTES",
          [expected, mayBeZero](const std::string &word, int64_t &value) {
            if (mayBeZero && word == "0") {
              value = 0;
              return std::string();
            }
            return parseBytes(word, value) ? std::string() : expected;
          }};
}

} // namespace accel
