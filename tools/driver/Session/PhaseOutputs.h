//===- PhaseOutputs.h - Modules as text -------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_SESSION_PHASEOUTPUTS_H
#define ACCEL_TOOLS_DRIVER_SESSION_PHASEOUTPUTS_H

#include "passes/Pipeline/Phases.h"
#include "tools/driver/Session/Compile.h"

namespace accel {

/// Writes modules wherever the options ask for them.
class PhaseOutputs {
public:
  /// All must outlive it.
  PhaseOutputs(const PlanOptions &options, DiagnosticEngine &engine,
               CompileResult &result)
      : options(options), engine(engine), result(result) {}

  /// `module` is one of this phase now. False where a file cannot be written,
  /// which is reported.
  bool reached(mlir::ModuleOp module, Phase phase);
  /// --dump-phases alone.
  bool dump(mlir::ModuleOp module, Phase phase);
  /// Something failed; without a message that is our own fault. False.
  bool internal(const std::string &what);

  static std::string print(mlir::ModuleOp module);

private:
  const PlanOptions &options;
  DiagnosticEngine &engine;
  CompileResult &result;
};

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_SESSION_PHASEOUTPUTS_H
