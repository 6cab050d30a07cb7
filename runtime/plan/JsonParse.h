//===- JsonParse.h - JSON text within limits --------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// nlohmann's parser for files that somebody else wrote: text that is short but
// asks for much memory, by nesting or by many small values, is refused. What is
// read so is taken apart by JsonReader.h. Files whose lines and columns matter
// are read by frontends/Yaml instead.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_JSONPARSE_H
#define ACCEL_RUNTIME_PLAN_JSONPARSE_H

#include <nlohmann/json.hpp>

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

namespace accel::plan {

struct JsonLimits {
  /// As deep as YAML files may nest, too. Each level takes far more memory than
  /// the two characters that ask for it.
  size_t depth = 100;
  /// A model of 405 billion parameters has half a million.
  size_t values = 10'000'000;
  /// Members of objects that are left out.
  std::set<std::string> without = {};
};

/// Why a text is not read: thrown by parseJson.
struct JsonSyntaxError {
  enum class Kind {
    Invalid, // `byte` is one past what was not expected
    EndsEarly,
    Number, // beyond the range of a double
    TooDeep,
    TooMany
  } kind = Kind::Invalid;
  size_t byte = 0;
  std::string message; // a phrase, without the place

  /// "line 3, column 5": columns count bytes.
  std::string position(std::string_view text) const;
};

nlohmann::json parseJson(std::string_view text, const JsonLimits &limits = {});

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_JSONPARSE_H
