//===- StageModel.h - A stage as a model of its own -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FRAMEWORKSTEPS_STAGEMODEL_H
#define ACCEL_PASSES_FRAMEWORKSTEPS_STAGEMODEL_H

#include "passes/FrameworkSteps/StepEvaluator.h"

namespace accel {

/// The calls of `range` as a model of their own. A tensor that comes from
/// another stage and has a gradient is received, and sent where it goes on.
struct StageModel {
  StepModel model;
  Candidate candidate;

  StageModel(const StepModel &whole, const Candidate &of,
             std::pair<int, int> range);

  std::vector<int> received; // values
  int64_t sentBytes = 0, receivedBytes = 0;

private:
  void add(StepCall call, int variant, bool offload);
  void sendOn(const StepModel &whole, std::pair<int, int> range);
};

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKSTEPS_STAGEMODEL_H
