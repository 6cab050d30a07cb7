//===- SettingDiagnostic.h - A finding about a setting ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_ACCELERATE_SETTINGDIAGNOSTIC_H
#define ACCEL_FRONTENDS_ACCELERATE_SETTINGDIAGNOSTIC_H

#include "frontends/Accelerate/Setting.h"
#include "frontends/Diagnostics/Diagnostics.h"

#include <utility>

namespace accel {

/// A finding at a place about a key. Its file is `otherwise` where the place is
/// of no file.
inline Diagnostic diagnosticAt(const Location &at, std::string key,
                               Severity severity, std::string code,
                               std::string message, std::string hint,
                               const std::string &otherwise = "") {
  Diagnostic d;
  d.severity = severity;
  d.code = std::move(code);
  d.file = at.file.empty() ? otherwise : at.file;
  d.line = at.line;
  d.column = at.column;
  d.key = std::move(key);
  d.message = std::move(message);
  d.hint = std::move(hint);
  return d;
}

/// A finding where `setting` (a Setting, or another value with `key` and `at`)
/// was written. Its file is empty if the value is a default of no file.
template <typename SettingT>
Diagnostic diagnosticAt(const SettingT &setting, Severity severity,
                        std::string code, std::string message,
                        std::string hint) {
  return diagnosticAt(setting.at, setting.key, severity, std::move(code),
                      std::move(message), std::move(hint));
}

} // namespace accel

#endif // ACCEL_FRONTENDS_ACCELERATE_SETTINGDIAGNOSTIC_H
