//===- JsonWriter.h - JSON text as it goes ----------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_JSONWRITER_H
#define ACCEL_RUNTIME_PLAN_JSONWRITER_H

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace accel::plan {

/// Appends JSON to `text`. The same calls give the same bytes.
class JsonWriter {
public:
  std::string text;

  JsonWriter() { text.reserve(1 << 20); }
  void raw(std::string_view s) { text += s; }
  /// Bytes that are not UTF-8 become U+FFFD: JSON has no other way.
  void string(std::string_view s);
  void integer(int64_t value) {
    char digits[24];
    text.append(digits, std::to_chars(digits, digits + 24, value).ptr);
  }
  /// The shortest text that reads back as the same double; always with a point
  /// or an exponent, so that it stays apart from integers.
  void real(double value);

  /// Starts a `"key": ` inside an object; `first` is the object's own state.
  void key(bool &first, std::string_view name) {
    text += first ? "\"" : ",\"";
    first = false;
    text += name;
    text += "\":";
  }
  void field(bool &first, std::string_view name, std::string_view value) {
    key(first, name);
    string(value);
  }
  void field(bool &first, std::string_view name, int64_t value) {
    key(first, name);
    integer(value);
  }
  void field(bool &first, std::string_view name, double value) {
    key(first, name);
    real(value);
  }
  void flag(bool &first, std::string_view name, bool value) {
    key(first, name);
    raw(value ? "true" : "false");
  }
  template <typename Range, typename Each>
  void list(const Range &range, Each each) {
    text += '[';
    bool first = true;
    for (const auto &item : range) {
      if (!first)
        text += ',';
      first = false;
      each(item);
    }
    text += ']';
  }
  template <typename Range> void integers(const Range &range) {
    list(range, [&](int64_t i) { integer(i); });
  }
  void strings(const std::vector<std::string> &range) {
    list(range, [&](const std::string &s) { string(s); });
  }
  /// A list with one item a line, indented by `indent`.
  template <typename Range, typename Each>
  void lines(const Range &range, int indent, Each each) {
    text += '[';
    bool first = true;
    for (const auto &item : range) {
      text += first ? "\n" : ",\n";
      first = false;
      text.append(indent, ' ');
      each(item);
    }
    if (!first) {
      text += '\n';
      text.append(indent - 2, ' ');
    }
    text += ']';
  }
};

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_JSONWRITER_H
