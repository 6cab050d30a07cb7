//===- TextWords.h - Parts and words of a text ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What the readers of a row's columns ask of a text in lower case.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_VALIDATE_TEXTWORDS_H
#define ACCEL_PASSES_VALIDATE_TEXTWORDS_H

#include "passes/Validate/RowWords.h"

#include <algorithm>
#include <cctype>

namespace accel::validate {

using Words = std::initializer_list<const char *>;

inline bool letterOrDigit(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}
inline bool digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

inline bool has(const std::string &text, const char *part) {
  return text.find(part) != text.npos;
}
inline bool hasAny(const std::string &text, Words parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const char *part) { return has(text, part); });
}
inline bool hasAnyWord(const std::string &text, Words words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char *word) { return hasWord(text, word); });
}

inline bool isOneOf(const std::string &word, Words words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char *one) { return word == one; });
}
inline bool startsOneOf(const std::string &word, Words starts) {
  return std::any_of(starts.begin(), starts.end(), [&](const char *start) {
    return word.starts_with(start);
  });
}

} // namespace accel::validate

#endif // ACCEL_PASSES_VALIDATE_TEXTWORDS_H
