//===- Fields.h - Strict access to a mapping --------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Our own format is strict: each key has a type and a range, and unknown keys
// are errors. A reader that fails reports once and leaves the default.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_JOB_FIELDS_H
#define ACCEL_FRONTENDS_JOB_FIELDS_H

#include "frontends/Accelerate/AccelerateConfig.h"

namespace accel {

/// Some mapping of a job file, with the dotted path to it.
class Fields {
public:
  Fields(const std::string &file, const yaml::Node &node, std::string path,
         DiagnosticEngine &engine)
      : file(file), node(node), path(std::move(path)), engine(engine) {}

  const yaml::Entry *find(const char *key) const { return node.findEntry(key); }
  /// A mapping below this one, or nothing (reported if it is something else).
  std::optional<Fields> mapping(const char *key) const;

  /// Reports every key that is not in `known`.
  void checkKeys(const std::vector<std::string> &known) const;

  void error(const char *code, const char *key, const std::string &message,
             const std::string &hint = "", bool atKey = false) const {
    report(Severity::Error, code, key, message, hint, atKey);
  }
  void report(Severity severity, const char *code, const char *key,
              const std::string &message, const std::string &hint = "",
              bool atKey = false) const;
  /// At this mapping itself.
  void errorHere(const char *code, const std::string &message,
                 const std::string &hint = "") const;

  // Each sets value and provenance; without the key, provenance alone.
  void integer(const char *key, Setting<int64_t> &setting, int64_t least,
               int64_t most) const;
  void integer(const char *key, Setting<std::optional<int64_t>> &setting,
               int64_t least, int64_t most) const;
  /// A finite number; `1e-4` counts although YAML 1.1 makes it a string.
  void number(const char *key, Setting<double> &setting, double least,
              double most) const;
  void number(const char *key, Setting<std::optional<double>> &setting,
              double least, double most) const;
  void flag(const char *key, Setting<bool> &setting) const;
  void text(const char *key, Setting<std::string> &setting) const;
  /// One of `choices`.
  void choice(const char *key, Setting<std::string> &setting,
              const std::vector<std::string> &choices) const;
  /// A regular expression that compiles.
  void regex(const char *key, Setting<std::string> &setting) const;
  /// A path, resolved against the file's folder.
  void pathTo(const char *key, Setting<std::string> &setting) const;

  std::string keyPath(const std::string &key) const {
    return path.empty() ? key : path + "." + key;
  }
  Location locate(const char *key) const;
  const yaml::Node &mappingNode() const { return node; }

private:
  const std::string &file;
  const yaml::Node &node;
  std::string path;
  DiagnosticEngine &engine;

  std::optional<int64_t> readInteger(const char *key, int64_t least,
                                     int64_t most) const;
  std::optional<double> readNumber(const char *key, double least,
                                   double most) const;
  template <typename T, typename V>
  void set(const char *key, Setting<T> &setting, V value) const {
    setting.key = keyPath(key);
    setting.at = locate(key);
    if (!value)
      return;
    setting.value = std::move(*value);
    setting.origin = Origin::Written;
    setting.why.clear(); // was the default's
  }
};

/// As printf's %g has it.
std::string shown(double value);

/// `path` as it is meant in `file`: absolute, or beside it.
std::string resolvePath(const std::string &file, const std::string &path);

} // namespace accel

#endif // ACCEL_FRONTENDS_JOB_FIELDS_H
