//===- Values.h - What the words behind an option mean ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Text becomes a typed value here and nowhere else: what reads an option gets
// bytes, numbers and enumerators.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_OPTIONS_VALUES_H
#define ACCEL_TOOLS_OPTIONS_VALUES_H

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace accel {

/// How the word behind an option becomes a T.
template <typename T> struct ValueKind {
  /// For the help: "N", "text|json".
  std::string placeholder;
  /// Puts what the word says into the value, which keeps what the word does not
  /// speak of. Returns what is wrong with the word ("expected ..."), or "".
  std::function<std::string(const std::string &, T &)> read;
};

/// Any text that is not empty.
ValueKind<std::string> textValue(std::string placeholder);

/// An integer from `least` to `most`.
ValueKind<int64_t> countValue(std::string placeholder = "N", int64_t least = 1,
                              int64_t most = int64_t(1) << 40);

/// A percentage from 50 to 99.5, with or without the sign; the value is 0.5 to
/// 0.995.
ValueKind<double> percentValue();
/// Bytes, as parseBytes reads them. `example` is for the message.
ValueKind<int64_t> bytesValue(std::string example, bool mayBeZero = false);

/// What a command prints: text for people, JSON for programs.
enum class ReportFormat { Text, Json };
ValueKind<ReportFormat> formatValue();

/// "70GiB", "70G", "1.5MiB", "500MB", "1024": bytes of at least 1 in `bytes`.
/// False if the text is none. K, M and G alone are powers of 1024.
bool parseBytes(std::string_view text, int64_t &bytes);

/// An integer and nothing else.
bool parseInteger(std::string_view text, int64_t &value);

/// "expected a, b or c", with "did you mean" where `word` is near one of them.
std::string expectedOneOf(const std::string &word,
                          const std::vector<std::string> &names);

/// One of `choices`, by name.
template <typename T>
ValueKind<T> choiceValue(std::vector<std::pair<std::string, T>> choices) {
  ValueKind<T> kind;
  for (const auto &[name, value] : choices)
    kind.placeholder += (kind.placeholder.empty() ? "" : "|") + name;
  kind.read = [choices](const std::string &word, T &value) -> std::string {
    std::vector<std::string> names;
    for (const auto &[name, meaning] : choices) {
      if (name == word) {
        value = meaning;
        return "";
      }
      names.push_back(name);
    }
    return expectedOneOf(word, names);
  };
  return kind;
}

} // namespace accel

#endif // ACCEL_TOOLS_OPTIONS_VALUES_H
