//===- JsonNesting.h - How deep JSON text nests -----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_JSONNESTING_H
#define ACCEL_RUNTIME_PLAN_JSONNESTING_H

#include <cstddef>
#include <string_view>

namespace accel::plan {

/// As deep as YAML files may nest, too. Each level of a tree takes far more
/// memory than the two characters that ask for it.
constexpr int maxJsonNesting = 100;

/// Where JSON text first nests deeper than `limit`: the offset of that bracket,
/// or npos.
inline size_t nestsDeeper(std::string_view text, int limit = maxJsonNesting) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
    case '"':
      for (++i; i < text.size() && text[i] != '"'; ++i)
        i += text[i] == '\\';
      break;
    case '[':
    case '{':
      if (++depth > limit)
        return i;
      break;
    case ']':
    case '}':
      --depth;
      break;
    default:
      break;
    }
  }
  return std::string_view::npos;
}

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_JSONNESTING_H
