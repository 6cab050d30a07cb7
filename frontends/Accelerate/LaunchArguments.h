//===- LaunchArguments.h - The command line of accelerate launch -*- C++ -*-==//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The argparse namespace of `accelerate launch` after it has merged a file,
// with the values that Python would hold: merging copies whatever YAML parsed,
// and nothing checks a type until an operator fails on it.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_ACCELERATE_LAUNCHARGUMENTS_H
#define ACCEL_FRONTENDS_ACCELERATE_LAUNCHARGUMENTS_H

#include "frontends/Accelerate/KeyTable.h"
#include "frontends/Yaml/Yaml.h"

#include <map>
#include <string>
#include <vector>

namespace accel {

/// Python's error, as "TypeError: ..."; caught by simulateLaunch.
struct LaunchRefusal {
  std::string error;
};

/// A value as Python sees it.
struct PythonValue {
  yaml::Kind kind = yaml::Kind::Null;
  std::string text = "None"; // what str() gives
  bool truth = false;        // what bool() gives
  double number = 0;         // Int, Float and Bool
  const yaml::Node *node = nullptr;
  std::string key; // dotted path where it is written; empty: a default

  static PythonValue of(const yaml::Node &node, std::string key);
  static PythonValue string(std::string text);
  static PythonValue boolean(bool value);
  static PythonValue integer(int64_t value);
  /// A default of the table of keys, as argparse would hold it.
  static PythonValue ofDefault(const KeyInfo &key, const char *text);

  bool isNone() const { return kind == yaml::Kind::Null; }
  bool isString() const { return kind == yaml::Kind::String; }
  bool isNumber() const {
    return kind == yaml::Kind::Int || kind == yaml::Kind::Float ||
           kind == yaml::Kind::Bool;
  }
  /// value > bound; a TypeError otherwise.
  bool exceeds(double bound) const;
  /// value.lower(); an AttributeError otherwise.
  std::string lower() const;
  /// int(value); a ValueError or TypeError otherwise.
  int64_t toInt() const;
};

std::string lowerCase(std::string text);
/// accelerate.utils.str_to_bool: empty for what it refuses.
std::optional<bool> stringToBool(std::string_view text);

class LaunchArguments {
public:
  /// Loads and merges; throws LaunchRefusal.
  LaunchArguments(const yaml::Node &root, AccelerateVersion version,
                  const std::string &prefix,
                  const std::vector<std::string> &foreign);

  /// None for what nobody set.
  const PythonValue &operator[](std::string_view name) const;
  bool flag(std::string_view name) const { return (*this)[name].truth; }
  const std::map<std::string, PythonValue, std::less<>> &all() const {
    return values;
  }

  bool sagemaker = false;
  std::string distributedType; // as written; empty if that is no string
  /// Keys of deepspeed_config in order, and mixed_precision if the file gave
  /// it: what DeepSpeedPlugin compares with a JSON file.
  std::string deepspeedFields;

private:
  void load();
  void loadKey(const yaml::Entry &entry);
  void loadDefaults();
  void selectLauncher();
  void checkGpuIds();
  void merge();
  void mergeSection(const std::string &name, const yaml::Node &section);
  void finish();
  void checkThreads();
  bool before(int major, int minor) const {
    return version < AccelerateVersion{major, minor};
  }

  const yaml::Node &root;
  const AccelerateVersion version;
  const std::string &prefix;
  const std::vector<std::string> &foreign;
  std::map<std::string, PythonValue, std::less<>> values;
  /// The dataclass that the file was loaded into, without sections.
  std::map<std::string, PythonValue, std::less<>> loaded;
};

} // namespace accel

#endif // ACCEL_FRONTENDS_ACCELERATE_LAUNCHARGUMENTS_H
