//===- Session.h - One run of the compiler ----------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What a run of `plan` has loaded: the inputs, the target, the MLIR context,
// and the model as a module, which is imported once for each batch.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_SESSION_SESSION_H
#define ACCEL_TOOLS_DRIVER_SESSION_SESSION_H

#include "frontends/Diagnostics/Diagnostics.h"
#include "passes/Cost/ErrorBars.h"
#include "passes/Pipeline/Import.h"
#include "passes/Pipeline/Phases.h"
#include "passes/Segments/Segments.h"
#include "passes/Targets/Target.h"
#include "tools/driver/Inputs/PlanInputs.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <array>
#include <map>
#include <memory>
#include <optional>

namespace accel {

class Session {
public:
  using Module = mlir::OwningOpRef<mlir::ModuleOp>;

  /// Both must outlive it.
  Session(const PlanOptions &options, DiagnosticEngine &engine);

  /// Reads the inputs and the target. Problems are reported.
  bool load();
  bool loadTarget(const std::string &name);

  const Target *targetOrNone() const { return target ? &*target : nullptr; }
  /// The target, or what bytes are predicted on where none is given: any
  /// machine of the kind does, since its speed and memory are not used. Its
  /// host has what --node-memory says.
  const Target &machine() const { return target ? *target : standIn; }
  /// What a rank may use of its device, in bytes; nothing where neither the
  /// command line nor the target says.
  std::optional<int64_t> budgetBytes() const;
  /// What a prediction may be to fit: the budget, or what --confidence leaves
  /// of it. Every choice and verdict is by this.
  std::optional<int64_t> roomBytes() const;
  /// What is predicted, as published runs tell it apart.
  ErrorBars::Run predictedRun() const;
  bool own() const { return inputs->executor == FrameworkKind::AccelRun; }
  /// The allocator that accel-run's program is planned for: as accel-run sets
  /// it up, unless the user sets it up, and as the job's torch asks it.
  RankAllocator ownAllocator() const;
  /// accel-run's program is asked for: to be printed, or written.
  bool asksForProgram() const;

  /// The model and the job as a module of phase `model`; null where that
  /// cannot be, which goes to `problems`.
  Module import(const PlanInputs &from, const ImportOptions &with,
                DiagnosticEngine &problems);
  Module import(const ImportOptions &with) {
    return import(*inputs, with, engine);
  }
  /// The same without the bodies of functions, which no decision reads.
  Module importSignatures(const PlanInputs &from, const ImportOptions &with,
                          DiagnosticEngine &problems);

  /// In `with`, the number of chunks that "auto" means for accel-run's program.
  bool chooseLossChunks(const PlanInputs &from, ImportOptions &with,
                        DiagnosticEngine &problems);

  /// Names each operator that is not modelled, once.
  void warnOpaque(mlir::ModuleOp module);

  /// As long as it lives, what MLIR reports is dropped: something is tried.
  class Quiet {
  public:
    explicit Quiet(Session &session) : session(session) { ++session.quiet; }
    ~Quiet() { --session.quiet; }
    Quiet(const Quiet &) = delete;
    Quiet &operator=(const Quiet &) = delete;

  private:
    Session &session;
  };

  const PlanOptions &options;
  DiagnosticEngine &engine;
  mlir::MLIRContext context;
  std::optional<Target> target;
  std::optional<PlanInputs> inputs;
  ImportOptions importing;     // of the framework that runs the job
  ImportOptions programImport; // of accel-run's program for it
  int64_t ranksPerNode = 0;    // 0: the target's own
  /// Of all that is planned; tests ask for more (PlanOptions::verifyEachPass).
  Verification verification() const {
    return options.verifyEachPass ? Verification::AfterEachPass
                                  : Verification::AtTheEnd;
  }
  /// Of settings that are tried.
  Verification verificationOfTried() const {
    return options.verifyEachPass ? Verification::AfterEachPass
                                  : Verification::Never;
  }

private:
  /// Micro-batch, sequence length, of Megatron-LM's GPT its vocabulary, which
  /// tensor parallelism fills up, and whether an adapter has adapterFunctions.
  using Sizes = std::array<int64_t, 4>;
  static Sizes sizesOf(const PlanInputs &from, const ImportOptions &with);

  /// The model alone, for `importJob` to complete a copy of it.
  mlir::ModuleOp model(const PlanInputs &from, const ImportOptions &with,
                       DiagnosticEngine &problems);
  mlir::LogicalResult report(mlir::Diagnostic &d);

  Target standIn; // where there is no target
  std::map<Sizes, Module> models, signatures;
  int quiet = 0;
  std::unique_ptr<mlir::ScopedDiagnosticHandler> handler;
};

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_SESSION_SESSION_H
