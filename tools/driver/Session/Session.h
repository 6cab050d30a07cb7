//===- Session.h - One run of the compiler ----------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What a run of `plan` has loaded and made: the inputs, the target, the MLIR
// context, and the decided step of each micro-batch and precision that was
// looked at, each made once.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_SESSION_SESSION_H
#define ACCEL_TOOLS_DRIVER_SESSION_SESSION_H

#include "frontends/Diagnostics/Diagnostics.h"
#include "passes/Checkpoint/SolvedWays.h"
#include "passes/Targets/Target.h"
#include "passes/Tune/Express.h"
#include "tools/driver/Session/ImportModule.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <array>
#include <map>
#include <memory>
#include <optional>

namespace accel {

class Session {
public:
  Session(const PlanOptions &options, DiagnosticEngine &engine);

  /// Reads the inputs and the target. Problems are reported.
  bool load();
  bool loadTarget(const std::string &name);

  const Target *targetOrNone() const { return target ? &*target : nullptr; }
  /// The target, or what bytes are predicted on where none is given: any
  /// machine of the kind does, since its speed and memory are not used.
  Target machine() const;

  /// The configuration as a module of phase `model`.
  mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
  import(const ImportOptions &options) {
    return import(*inputs, options);
  }
  mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
  import(const PlanInputs &from, const ImportOptions &options) {
    return importModule(context, from, options, engine);
  }

  /// Takes the step of the configuration from its module, which is decided and
  /// differentiated. Problems are reported.
  bool keep(mlir::ModuleOp module);
  /// The step of the configuration with another micro-batch, under another of
  /// PlanInputs::precisions (from 1), with other loss chunks (0: as
  /// configured). Null if there is none; problems of the configuration itself
  /// are reported.
  std::shared_ptr<const DecidedStep> step(int64_t microBatch, int recipe,
                                          int64_t lossChunks);

  /// What `plan` predicts of the configuration with these lines in its YAML and
  /// these options: read, decided and replayed anew, on the model that is
  /// loaded. Nothing where it is refused, or where accel-run's program would
  /// have to be compiled.
  std::optional<StepPrediction> replan(const std::vector<tune::YamlLine> &lines,
                                       const tune::Flags &flags);
  /// A step on the target, with the allocator's segments by replay.
  StepPrediction predict(const StepModel &model, const Candidate &candidate,
                         const replay::AllocatorRules &rules,
                         bool detail) const;

  /// Names each operator that is not modelled, once.
  void warnOpaque(mlir::ModuleOp module);

  const PlanOptions &options;
  DiagnosticEngine &engine;
  mlir::MLIRContext context;
  std::optional<Target> target;
  std::optional<PlanInputs> inputs;
  ImportOptions importing;     // of the framework that runs the job
  ImportOptions programImport; // of accel-run's program for it
  int64_t ranksPerNode = 0;    // 0: the target's own

private:
  mlir::LogicalResult report(mlir::Diagnostic &d);
  std::shared_ptr<const DecidedStep> read(mlir::ModuleOp module);

  /// The model of a micro-batch without the bodies of its functions, which no
  /// decision reads.
  mlir::OwningOpRef<mlir::ModuleOp> signatures(const PlanInputs &from,
                                               const ImportOptions &options);

  /// The step model of a decided module, shared by all whose functions compute
  /// the same.
  std::shared_ptr<const StepModel> modelFor(mlir::ModuleOp module,
                                            const PlanInputs &from,
                                            const ImportOptions &with);

  std::map<std::pair<const void *, int64_t>, std::shared_ptr<const StepModel>>
      models;
  std::map<int64_t, mlir::OwningOpRef<mlir::ModuleOp>> templates;
  std::optional<std::string> configText; // of the file, when it was read
  bool trying = false;                   // what fails is left out, not reported
  std::unique_ptr<SolvedWays> solved;
  std::map<std::array<int64_t, 3>, std::shared_ptr<const DecidedStep>> steps;
  std::unique_ptr<mlir::ScopedDiagnosticHandler> handler;
};

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_SESSION_SESSION_H
