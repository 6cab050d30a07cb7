//===- LintTables.h - What lint prints beside findings ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_REPORT_LINTTABLES_H
#define ACCEL_TOOLS_DRIVER_REPORT_LINTTABLES_H

#include "frontends/Accelerate/AccelerateConfig.h"

#include <string>

namespace accel {

/// `lint --effective`: a table of key, asked, effective, why; sections apart.
std::string renderEffective(const AccelerateConfig &config);
/// The same as a JSON array of {key, asked, effective, why, origin, line,
/// column}, without a line break at its end.
std::string renderEffectiveJson(const AccelerateConfig &config);

/// `lint --emit env`: NAME=value lines for a shell; what depends on the machine
/// stands in comments.
std::string renderEnvironment(const LaunchEnvironment &launch);
/// {launcher, refused, variables [{name, value, key, line, column, when}]}.
std::string renderEnvironmentJson(const LaunchEnvironment &launch);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_REPORT_LINTTABLES_H
