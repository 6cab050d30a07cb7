//===- LintFiles.h - Files linted, and repaired -----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_EMIT_LINTFILES_H
#define ACCEL_TOOLS_DRIVER_EMIT_LINTFILES_H

#include "frontends/Job/JobConfig.h"
#include "frontends/Lint/Lint.h"
#include "tools/driver/Options/ScriptOptions.h"

namespace accel {

struct LintJob {
  std::vector<std::string> paths;
  bool hasConfig = true; // else the script's arguments describe the job
  LoadOptions options;
  LintOptions checks;
  DiagnosticPolicy policy;
  ScriptOptions script;
  enum class Fix { Diff, Write };
  std::optional<Fix> fix; // what can be repaired; Write: and written
};

/// The text of a file, and what repairing makes of it.
struct Repair {
  std::string path, before, after;
};

struct LintResult {
  LoadedConfig loaded; // of the last file
  std::vector<Repair> repairs;
  size_t fixed = 0;
  /// Repairs that would have changed more than their own line.
  size_t refused = 0;
  bool written = true; // all that was to be written
};

/// A file that a script's arguments belong to, or a recipe of them: no
/// accelerate YAML, and not repaired.
bool isOfScript(const LintJob &job, const std::string &path);

/// Lints each file, and writes its repairs where that is asked for.
LintResult lintFiles(const LintJob &job, DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_EMIT_LINTFILES_H
