//===- PredictStep.cpp - A configuration under an executor ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Executors/PredictStep.h"

using namespace mlir;

namespace accel {

FailureOr<PredictedStep> predictStep(mlir::ModuleOp module,
                                     const JobConfig &job,
                                     ExecutorKind executor,
                                     const Target &target, plan::DType loaded,
                                     const std::string &torchVersion) {
  ExecutorSettings settings = settingsOf(job, executor, loaded);
  settings.torchVersion = torchVersion;
  StepModelOptions options;
  options.executor = executor;
  options.target = &target;
  auto model = buildStepModel(module, options);
  if (failed(model))
    return failure();
  PredictedStep step;
  step.model = std::move(*model);
  // torch makes lists of tensors on accelerators alone.
  if (step.model.device == "cpu" &&
      settings.optimizer == OptimizerKernel::Foreach)
    settings.optimizer = OptimizerKernel::ForLoop;
  step.candidate = defaultCandidate(step.model, settings);
  if (std::string problem = verifyCandidate(step.model, step.candidate);
      !problem.empty())
    return module.emitError() << problem;
  StepEvaluator evaluator(step.model, target);
  step.first = evaluator.evaluate(step.candidate, /*detail=*/true);
  EvaluateOptions last;
  last.lastRank = true;
  step.last = evaluator.evaluate(step.candidate, last);
  return step;
}

} // namespace accel
