//===- ValidationFolders.h - Targets and models by name ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A table of measured runs names devices and models; these find their files.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_INPUTS_VALIDATIONFOLDERS_H
#define ACCEL_TOOLS_DRIVER_INPUTS_VALIDATIONFOLDERS_H

#include "frontends/Diagnostics/Diagnostics.h"
#include "passes/Targets/Target.h"
#include "passes/Validate/RunDescription.h"

#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace accel {

/// Targets by name: DIR/NAME.yaml comes before the shipped one; each is read
/// once. Without a folder (""), the shipped ones.
class TargetsByName {
public:
  /// `engine` must outlive it.
  TargetsByName(std::string folder, DiagnosticEngine &engine)
      : folder(std::move(folder)), engine(engine) {}
  /// Null where there is none; the reason was reported.
  const Target *operator()(const std::string &name);

private:
  std::string folder;
  DiagnosticEngine &engine;
  std::map<std::string, std::optional<Target>> known;
};

/// config.json by the model's name: DIR/NAME/config.json, or DIR/NAME.json.
class ConfigsByName {
public:
  explicit ConfigsByName(const std::string &folder);
  /// Nothing where there is none.
  std::optional<validate::OwnConfig> operator()(const std::string &name) const;

private:
  std::map<std::string, std::filesystem::path> files;
};

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_INPUTS_VALIDATIONFOLDERS_H
