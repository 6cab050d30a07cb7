//===- LintFix.h - accel-opt lint --fix -------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_EMIT_LINTFIX_H
#define ACCEL_TOOLS_DRIVER_EMIT_LINTFIX_H

#include "frontends/Lint/Lint.h"
#include "frontends/Yaml/Fix.h"

namespace accel {

/// Makes the fixes of a file that is linted with `options` and
/// `checks` under `policy`.
/// `before` gets what the file holds now. Reports into `engine` what keeps the
/// file from being read. Nothing is written.
yaml::FixResult fixConfig(const std::string &path, const LoadOptions &options,
                          const LintOptions &checks,
                          const DiagnosticPolicy &policy, std::string &before,
                          DiagnosticEngine &engine);

/// The same of a text that stands for the file.
yaml::FixResult fixText(const std::string &path, const std::string &before,
                        const LoadOptions &options, const LintOptions &checks,
                        const DiagnosticPolicy &policy);

/// Replaces the file by `after` (temporary name, fsync, rename; its permissions
/// stay), unless it no longer holds `before`. False (reported, write-failed)
/// if that cannot be done; the file is then as it was.
bool writeFixed(const std::string &path, const std::string &before,
                const std::string &after, DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_EMIT_LINTFIX_H
