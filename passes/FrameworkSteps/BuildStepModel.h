//===- BuildStepModel.h - The step model of a module ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FRAMEWORKSTEPS_BUILDSTEPMODEL_H
#define ACCEL_PASSES_FRAMEWORKSTEPS_BUILDSTEPMODEL_H

#include "passes/FrameworkSteps/AccelRunVariants.h"
#include "passes/FrameworkSteps/StepEvaluator.h"
#include "passes/Recompute/SavedSetCache.h"

#include "mlir/IR/BuiltinOps.h"

namespace accel {

struct StepModelOptions {
  /// Seconds are 0 without one.
  const Target *target = nullptr;
  /// Where a target is given too: adds the solved ways of each segment to its
  /// variants. Shared by the models that a search compares.
  SavedSetCache *solved = nullptr;
  /// Shared by the models of one target.
  AccelRunVariantCache *variants = nullptr;
};

/// Reduces `module`, whose decisions are taken and whose functions have their
/// derivatives (the pipelines to-decided and to-differentiated), to a step
/// model. Save attributes of its joint functions are overwritten.
mlir::FailureOr<StepModel> buildStepModel(mlir::ModuleOp module,
                                          const StepModelOptions &options);

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKSTEPS_BUILDSTEPMODEL_H
