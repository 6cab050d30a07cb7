//===- PredictStep.h - A configuration under an executor --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_EXECUTORS_PREDICTSTEP_H
#define ACCEL_PASSES_EXECUTORS_PREDICTSTEP_H

#include "passes/Executors/BuildStepModel.h"
#include "passes/Executors/Settings.h"

namespace accel {

/// A step as configured: what was built, and what it holds and takes.
struct PredictedStep {
  StepModel model;
  Candidate candidate;
  StepPrediction first; // the rank with the largest shards, with its lists
  StepPrediction last;  // the one with the smallest
};

/// `module` is of phase `model` and stays as it is; `loaded` is the dtype of
/// the checkpoint, `torchVersion` the version of torch whose executor it is.
/// Emits an error and fails where the executor cannot run the configuration.
mlir::FailureOr<PredictedStep>
predictStep(mlir::ModuleOp module, const JobConfig &job, ExecutorKind executor,
            const Target &target, plan::DType loaded,
            const std::string &torchVersion = "2.15");

} // namespace accel

#endif // ACCEL_PASSES_EXECUTORS_PREDICTSTEP_H
