//===- Compile.h - From a configuration to a plan ---------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_SESSION_COMPILE_H
#define ACCEL_TOOLS_DRIVER_SESSION_COMPILE_H

#include "frontends/Diagnostics/Diagnostics.h"
#include "runtime/plan/Plan.h"
#include "tools/driver/Options/PlanOptions.h"
#include "tools/driver/Session/PlanReport.h"

namespace accel {

struct CompileResult {
  bool valid = false; // everything that was asked for is there
  /// accel-run's program, where it is asked for: of what --tune chose, if
  /// anything.
  std::optional<plan::Plan> program;
  /// Units of the configuration under its framework, with the decisions of
  /// what --tune chose; not if --compile-to stopped earlier. Without programs
  /// but accel-run's.
  std::optional<plan::Plan> shown;
  /// The same of what --tune chose.
  std::optional<plan::Plan> chosen;
  PlanReport report;
  std::string sharded, scheduled; // MLIR text, where it is asked for
};

/// Reads, imports, runs the phases and predicts. Problems go to `engine`.
CompileResult compile(const PlanOptions &options, DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_SESSION_COMPILE_H
