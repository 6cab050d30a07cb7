//===- BuildStepModel.h - The step model of a module ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_EXECUTORS_BUILDSTEPMODEL_H
#define ACCEL_PASSES_EXECUTORS_BUILDSTEPMODEL_H

#include "passes/Checkpoint/SolvedWays.h"
#include "passes/Executors/Executor.h"

#include "mlir/IR/BuiltinOps.h"

namespace accel {

struct StepModelOptions {
  /// Whose functions: AccelRun's own, or the operators that PyTorch runs
  /// eagerly for the others.
  ExecutorKind executor = ExecutorKind::Fsdp2;
  /// Seconds are 0 without one.
  const Target *target = nullptr;
  /// The variant "full" checkpoints each child of a layer by itself: its
  /// attention, its MLP and its norms keep their inputs (Accelerate 1.8 to
  /// 1.14 under FSDP2).
  bool checkpointsChildren = false;
  /// Where a target is given too: adds the solved ways of each segment to its
  /// variants. Shared by the models that a search compares.
  SolvedWays *solved = nullptr;
};

/// Reduces `module`, of phase `model`, to a step model; the module stays as it
/// is. Emits errors as the passes of phase `sharded` do.
mlir::FailureOr<StepModel> buildStepModel(mlir::ModuleOp module,
                                          const StepModelOptions &options);

} // namespace accel

#endif // ACCEL_PASSES_EXECUTORS_BUILDSTEPMODEL_H
