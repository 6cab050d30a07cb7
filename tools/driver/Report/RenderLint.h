//===- RenderLint.h - What lint prints --------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_REPORT_RENDERLINT_H
#define ACCEL_TOOLS_DRIVER_REPORT_RENDERLINT_H

#include "tools/driver/Emit/LintFiles.h"
#include "tools/driver/Report/LintFormats.h"

namespace accel {

struct LintReport {
  LintFormat format = LintFormat::Text;
  bool effective = false; // and what each key does
  /// And the environment that `accelerate launch` would set (--emit env), which
  /// then is all that is printed to standard output.
  const LaunchEnvironment *environment = nullptr;
};

/// What is printed to the two streams.
struct LintText {
  std::string out, err;
};

LintText renderLint(const LintJob &job, const LintResult &result,
                    const LintReport &report, const DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_REPORT_RENDERLINT_H
