//===- JsonDocument.h - A JSON file with positions --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// JSON of a model's folder, with the line and column of every member and
// element, so that a diagnostic can point at it. frontends/Yaml reads it, as
// Python's json.load does, which transformers uses: NaN and Infinity are
// numbers, of equal keys the last holds. Columns count characters.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CONFIGJSON_JSONDOCUMENT_H
#define ACCEL_FRONTENDS_CONFIGJSON_JSONDOCUMENT_H

#include "frontends/Diagnostics/Diagnostics.h"
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace accel::yaml {
struct Node;
}

namespace accel::huggingface {

/// Line and column, from 1; 0 is unknown.
struct TextPosition {
  int line = 0, column = 0;
};

/// Why a text is not JSON.
struct JsonError {
  TextPosition position;
  std::string message; // one phrase, without file and position
};

class JsonDocument {
public:
  /// Parses `text`. Fills `error` and returns nothing on a syntax error, on bad
  /// UTF-8, and where brackets nest deeper than 100 levels.
  static std::optional<JsonDocument> parse(std::string_view text,
                                           JsonError &error);

  const nlohmann::json &root() const { return tree; }

  /// Where the value of `key` stands; `key` joins member names and element
  /// numbers by dots ("rope_scaling.factor"). For an absent key the position of
  /// its nearest parent that exists; the start of the text at last.
  TextPosition position(const std::string &key) const;

private:
  nlohmann::json convert(const yaml::Node &node, const std::string &key);

  nlohmann::json tree;
  std::unordered_map<std::string, TextPosition> positions;
};

/// Reads a whole file of at most `limit` bytes, or reports why not.
bool readFile(const std::string &path, uint64_t limit, std::string &text,
              DiagnosticEngine &diagnostics);

/// Reports that `path` cannot be opened or read; `code` is an errno value.
void reportFile(const std::string &path, int code,
                DiagnosticEngine &diagnostics);

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_CONFIGJSON_JSONDOCUMENT_H
