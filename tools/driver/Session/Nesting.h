//===- Nesting.h - How deep a text is nested --------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_SESSION_NESTING_H
#define ACCEL_TOOLS_DRIVER_SESSION_NESTING_H

#include <algorithm>
#include <string_view>

namespace accel {

/// Modules of ours nest about ten deep. MLIR's parser recurses for each level
/// and has no limit of its own.
constexpr int maxMlirNesting = 1000;

/// The deepest nesting of brackets in MLIR text, outside of strings and
/// comments.
inline int mlirNesting(std::string_view text) {
  int depth = 0, deepest = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
    case '"':
      for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i)
        i += text[i] == '\\';
      break;
    case '/':
      if (i + 1 < text.size() && text[i + 1] == '/')
        i = std::min(text.find('\n', i), text.size());
      break;
    case '(':
    case '[':
    case '{':
    case '<':
      deepest = std::max(deepest, ++depth);
      break;
    case '>':
      if (i > 0 && text[i - 1] == '-') // an arrow
        break;
      [[fallthrough]];
    case ')':
    case ']':
    case '}':
      depth = std::max(depth - 1, 0);
      break;
    default:
      break;
    }
  }
  return deepest;
}

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_SESSION_NESTING_H
