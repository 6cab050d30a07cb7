//===- JsonWriter.cpp - JSON text as it goes ------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/JsonWriter.h"

#include <cmath>

namespace accel::plan {

namespace {
/// Length of the valid UTF-8 sequence at `at`, 0 if there is none.
size_t utf8Length(std::string_view text, size_t at) {
  auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  auto trails = [&](size_t n) {
    for (size_t i = 1; i <= n; ++i)
      if ((byte(at + i) & 0xc0) != 0x80)
        return false;
    return true;
  };
  unsigned first = byte(at), second = byte(at + 1);
  if (first < 0x80)
    return 1;
  if (first >= 0xc2 && first <= 0xdf)
    return trails(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    bool overlong = first == 0xe0 && second < 0xa0;
    bool surrogate = first == 0xed && second >= 0xa0;
    return !overlong && !surrogate && trails(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    bool overlong = first == 0xf0 && second < 0x90;
    bool beyond = first == 0xf4 && second >= 0x90;
    return !overlong && !beyond && trails(3) ? 4 : 0;
  }
  return 0;
}
} // namespace

void JsonWriter::string(std::string_view s) {
  text += '"';
  for (size_t i = 0; i < s.size();) {
    unsigned char c = s[i];
    if (c == '"' || c == '\\') {
      text += '\\';
      text += s[i++];
    } else if (c < 0x20) {
      text += "\\u00";
      text += "0123456789abcdef"[c >> 4];
      text += "0123456789abcdef"[c & 15];
      ++i;
    } else if (size_t n = utf8Length(s, i)) {
      text.append(s, i, n);
      i += n;
    } else {
      text += "\\ufffd";
      ++i;
    }
  }
  text += '"';
}

void JsonWriter::real(double value) {
  if (!std::isfinite(value)) {
    raw(std::isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"");
    return;
  }
  char digits[40];
  char *end = std::to_chars(digits, digits + 40, value).ptr;
  std::string_view printed(digits, end - digits);
  raw(printed);
  if (printed.find_first_of(".e") == std::string_view::npos)
    raw(".0");
}

} // namespace accel::plan
