//===- DecidedSteps.h - What plan says of other settings --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The decided step of each micro-batch and precision that is looked at, made
// once, and what `plan` would predict of a changed configuration.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_SESSION_DECIDEDSTEPS_H
#define ACCEL_TOOLS_DRIVER_SESSION_DECIDEDSTEPS_H

#include "passes/FrameworkSteps/AccelRunVariants.h"
#include "passes/FrameworkSteps/PlannedSteps.h"
#include "passes/Recompute/SavedSetCache.h"
#include "passes/Tune/ConfigEdits.h"
#include "tools/driver/Session/Session.h"

namespace accel {

class DecidedSteps {
public:
  /// The session is loaded, and must outlive it.
  explicit DecidedSteps(Session &session);

  /// Takes the step of the configuration from its module, which is decided and
  /// differentiated. Problems are reported.
  bool keep(mlir::ModuleOp module);
  /// Decides, where the job does not say it, which gathers a backward holds
  /// back and which reductions it waits for: in `module`, in the step that was
  /// kept, and in the session's options, so that changes of the configuration
  /// are compared with it.
  void decideWaits(mlir::ModuleOp module);
  /// The step of the configuration with another micro-batch, under another of
  /// PlanInputs::precisions (from 1), with other loss chunks (0: as
  /// configured). Null if there is none; problems of the configuration itself
  /// are reported.
  std::shared_ptr<const DecidedStep> at(int64_t microBatch, int precision,
                                        int64_t lossChunks);

  /// The same of the configuration with another micro-batch, without the ways
  /// of a segment that are solved for a cap, and without a word.
  std::shared_ptr<const DecidedStep> unsolvedAt(int64_t microBatch);

  /// What `plan` predicts of the configuration with each of these edits alone:
  /// read and decided anew, on the model that is loaded, and then predicted in
  /// threads, or lowered to accel-run's program. Nothing where it is refused.
  std::vector<std::optional<StepPrediction>>
  planAgain(const std::vector<tune::ConfigEdit> &edits);
  /// The step model of an edited configuration; null where it is refused.
  /// Whatever differs in stages alone has the same functions. It has the ways
  /// of a segment that are not solved for a cap, which take seconds to find.
  std::shared_ptr<const StepModel> modelOf(const tune::ConfigEdit &edit);
  /// The inputs and options of an edited configuration.
  struct Edited {
    PlanInputs inputs;
    ImportOptions importing;
  };
  std::optional<Edited> edited(const tune::ConfigEdit &edit);
  /// What accel-run's program of these inputs and options takes; its segments
  /// are replayed.
  std::optional<StepPrediction> planProgram(const PlanInputs &from,
                                            ImportOptions with);

private:
  /// A program whose batch is fixed has no model at another one.
  bool hasBatch(int64_t microBatch) const;
  /// Seconds are known by which reductions can be chosen.
  bool weighsWaits() const;
  /// `solves`: with the ways of segments that are solved for a cap.
  std::shared_ptr<const DecidedStep> read(mlir::ModuleOp module,
                                          bool solves = true);
  /// The module of these inputs and options, decided and differentiated; null
  /// where it is refused. What was kept of the same is handed out, once.
  Session::Module differentiated(const PlanInputs &from,
                                 const ImportOptions &with,
                                 DiagnosticEngine &problems);
  /// The step of these inputs and options; null where it is refused.
  std::shared_ptr<const DecidedStep> decide(const PlanInputs &from,
                                            const ImportOptions &with,
                                            DiagnosticEngine &problems,
                                            bool solves = true);
  /// The step model of a decided module, shared by all whose functions compute
  /// the same.
  std::shared_ptr<const StepModel> modelFor(mlir::ModuleOp module,
                                            const PlanInputs &from,
                                            const ImportOptions &with);
  /// The decided step of an edited configuration, and the model that it reads;
  /// nothing where it is refused.
  std::optional<PlannedStep> plannedStep(const Edited &edited);

  /// What the functions of a decided module compute depends on these; MLIR's
  /// attributes are unique.
  struct FunctionsKey {
    /// What the job asks of its dtypes and of its kernels.
    const void *precision = nullptr, *kernels = nullptr;
    int64_t microBatch = 1;
    std::array<int64_t, 4> sharing{}; // ranks of tp, cp, sp; whether sequences
    auto operator<=>(const FunctionsKey &) const = default;
  };
  static FunctionsKey keyOf(mlir::ModuleOp module, const PlanInputs &from,
                            int64_t microBatch);

  Session &session;
  /// A module that was differentiated, by what it was asked for: the same
  /// loss's chunks are estimated first and then, as a change, lowered.
  struct Differentiated {
    Session::Module asked, module;
  };
  std::vector<Differentiated> kept;
  SavedSetCache solved;
  AccelRunVariantCache variants;
  std::map<FunctionsKey, std::shared_ptr<const StepModel>> models;
  /// By how ranks share functions, and the micro-batch.
  std::map<std::pair<std::array<int64_t, 4>, int64_t>,
           std::shared_ptr<const StepModel>>
      ofMesh;
  std::map<std::array<int64_t, 3>, std::shared_ptr<const DecidedStep>> steps;
};

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_SESSION_DECIDEDSTEPS_H
