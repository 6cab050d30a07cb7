//===- ConfigReader.h - Typed access to a config.json -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Reads members of one JSON file by dotted key, checks type and range, and
// reports with file, line and column. After an error readers get the default,
// so that one mistake gives one message.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CONFIGJSON_CONFIGREADER_H
#define ACCEL_FRONTENDS_CONFIGJSON_CONFIGREADER_H

#include "frontends/ConfigJson/JsonDocument.h"
#include "frontends/Diagnostics/Diagnostics.h"
#include "runtime/plan/Plan.h"

namespace accel::huggingface {

/// Limits that no published model comes near. They keep all products of two
/// sizes, and the sum of all parameters' bytes, far inside int64_t.
namespace sizeLimits {
constexpr int64_t size = int64_t(1) << 24;
constexpr double parameters = 1e15;
constexpr int64_t vocab = int64_t(1) << 28;
constexpr int64_t layers = 16384;
constexpr int64_t positions = int64_t(1) << 40;
} // namespace sizeLimits

class ConfigReader {
public:
  /// Parses `text`; reports a syntax error, and has then `failed`.
  ConfigReader(const std::string &text, std::string path,
               DiagnosticEngine &diagnostics);

  /// While it lives, keys are those of a member that is an object:
  /// "text_config". Sections nest.
  class Section {
  public:
    Section(ConfigReader &reader, const std::string &key)
        : reader(reader), outer(reader.scope) {
      reader.scope += key + ".";
    }
    ~Section() { reader.scope = outer; }
    Section(const Section &) = delete;
    Section &operator=(const Section &) = delete;

  private:
    ConfigReader &reader;
    std::string outer;
  };

  const nlohmann::json &root() const { return document->root(); }
  /// True once an error was reported, `unsupported` included.
  bool failed() const { return anyError; }

  /// The member, or nothing where it is absent or null.
  const nlohmann::json *find(const std::string &key) const;
  bool has(const std::string &key) const { return lookup(key) != nullptr; }
  bool isNull(const std::string &key) const;

  /// An integer in [1, limit]. Null is read as absent where `nullable`.
  int64_t size(const std::string &key, int64_t otherwise, int64_t limit,
               bool nullable = false);
  /// Any integer that int64_t holds; nothing after an error.
  std::optional<int64_t> integer(const std::string &key);
  /// A finite number.
  double number(const std::string &key, double otherwise,
                bool nullable = false);
  /// A number between 0 and 1, such as dropout's.
  double probability(const std::string &key, double otherwise,
                     bool nullable = false);
  bool flag(const std::string &key, bool otherwise);
  /// A string; nothing where it is absent, null or (with an error) not one.
  std::optional<std::string> text(const std::string &key);

  /// The first class of `architectures`; `otherwise` where it is absent, as
  /// transformers then goes by model_type alone, and nothing after an error.
  std::optional<std::string> architecture(const std::string &otherwise);

  /// The checkpoint's dtype: "dtype", or the older "torch_dtype".
  std::optional<plan::DType> dtype();

  void error(const std::string &key, const std::string &message);
  /// Valid, but not supported yet (exit code 4).
  void unsupported(const std::string &key, const std::string &message,
                   const std::string &hint = "");
  void warning(const std::string &key, const std::string &code,
               const std::string &message);

private:
  const nlohmann::json *lookup(const std::string &name) const;
  void reportAt(TextPosition position, Severity severity,
                const std::string &code, const std::string &key,
                const std::string &message, const std::string &hint = "");

  std::string path;
  DiagnosticEngine &diagnostics;
  std::optional<JsonDocument> document;
  std::string scope; // before each key: "" or "text_config."
  bool anyError = false;

  /// The path of a key, or of the section itself for "".
  std::string pathOf(const std::string &key) const {
    return key.empty() && !scope.empty() ? scope.substr(0, scope.size() - 1)
                                         : scope + key;
  }
};

} // namespace accel::huggingface

#endif // ACCEL_FRONTENDS_CONFIGJSON_CONFIGREADER_H
