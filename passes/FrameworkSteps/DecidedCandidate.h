//===- DecidedCandidate.h - The candidate that a module decides -*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FRAMEWORKSTEPS_DECIDEDCANDIDATE_H
#define ACCEL_PASSES_FRAMEWORKSTEPS_DECIDEDCANDIDATE_H

#include "passes/FrameworkSteps/BuildStepModel.h"

#include "mlir/IR/BuiltinOps.h"

namespace accel {

/// How the step of `module` is run, read from its decisions and from nothing
/// else; `model` is the step model of the same module. Emits an error where a
/// decision is missing.
mlir::FailureOr<Candidate> decidedCandidate(mlir::ModuleOp module,
                                            const StepModel &model);

/// The step of a module whose decisions are taken and whose functions have
/// their derivatives: its model, and how it is run.
mlir::FailureOr<DecidedStep> decidedStep(mlir::ModuleOp module,
                                         const StepModelOptions &options);

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKSTEPS_DECIDEDCANDIDATE_H
