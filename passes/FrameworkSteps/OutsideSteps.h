//===- OutsideSteps.h - What a job holds beside its usual step --*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The first step of a job and the forward of its evaluations, on the engine
// that plays its other steps. A pipeline, whose stages are evaluated one by
// one, has neither.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FRAMEWORKSTEPS_OUTSIDESTEPS_H
#define ACCEL_PASSES_FRAMEWORKSTEPS_OUTSIDESTEPS_H

#include "passes/FrameworkSteps/StepEvaluator.h"

namespace accel {

struct FirstStep {
  /// Tensors at its peak. torch's optimizers make their states in their first
  /// update, DeepSpeed's when they are initialized.
  int64_t peakBytes = 0;
  /// Of StepPrediction::persistentBytes: gradients that whatever comes after a
  /// step frees first.
  int64_t passingBytes = 0;
};

std::optional<FirstStep> firstStep(const StepModel &model, const Target &target,
                                   const Candidate &candidate);

/// Bytes that a forward without gradients holds at its peak beside what stays:
/// activations, and weights that are gathered or cast. The logits are made in
/// so many parts; what the loss makes of them is not counted.
std::optional<int64_t> evaluationBytes(const StepModel &model,
                                       const Target &target,
                                       const Candidate &candidate,
                                       int64_t lossParts);

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKSTEPS_OUTSIDESTEPS_H
