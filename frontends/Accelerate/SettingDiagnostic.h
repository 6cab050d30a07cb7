//===- SettingDiagnostic.h - A finding about a setting ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_ACCELERATE_SETTINGDIAGNOSTIC_H
#define ACCEL_FRONTENDS_ACCELERATE_SETTINGDIAGNOSTIC_H

#include "frontends/Diagnostics/Diagnostics.h"

#include <utility>

namespace accel {

/// A finding where `setting` (a Setting, or another value with `key` and `at`)
/// was written. Its file is empty if the value is a default of no file.
template <typename SettingT>
Diagnostic diagnosticAt(const SettingT &setting, Severity severity,
                        std::string code, std::string message,
                        std::string hint) {
  Diagnostic d;
  d.severity = severity;
  d.code = std::move(code);
  d.file = setting.at.file;
  d.line = setting.at.line;
  d.column = setting.at.column;
  d.key = setting.key;
  d.message = std::move(message);
  d.hint = std::move(hint);
  return d;
}

} // namespace accel

#endif // ACCEL_FRONTENDS_ACCELERATE_SETTINGDIAGNOSTIC_H
