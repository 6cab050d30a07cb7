//===- Reads.h - What an action waits for -----------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Values by number, so that verifier, simulator and search ask one table: the
// activations and the input's gradients that each stage makes of each
// micro-batch.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_PIPELINESCHEDULES_READS_H
#define ACCEL_PASSES_PIPELINESCHEDULES_READS_H

#include "passes/PipelineSchedules/Schedule.h"

namespace accel::pipeline {

struct Values {
  explicit Values(const Problem &problem) : problem(problem) {}

  size_t count() const {
    return size_t(2) * problem.stages * problem.microBatches;
  }
  int activation(int stage, int microBatch) const {
    return 2 * (stage * problem.microBatches + microBatch);
  }
  int gradient(int stage, int microBatch) const {
    return activation(stage, microBatch) + 1;
  }
  /// What the action makes, or -1.
  int made(const Action &action) const {
    if (action.pass == Pass::Forward)
      return activation(action.stage, action.microBatch);
    return action.pass == Pass::BackwardWeight
               ? -1
               : gradient(action.stage, action.microBatch);
  }
  /// What the action reads of a neighbouring stage, or -1.
  int readOfNeighbour(const Action &action) const {
    if (action.pass == Pass::Forward)
      return action.stage > 0 ? activation(action.stage - 1, action.microBatch)
                              : -1;
    return action.pass != Pass::BackwardWeight &&
                   action.stage + 1 < problem.stages
               ? gradient(action.stage + 1, action.microBatch)
               : -1;
  }
  int stageOf(int value) const { return value / 2 / problem.microBatches; }
  int rankOf(int value) const { return problem.rankOf(stageOf(value)); }
  /// The rank that another stage's part in it is on, or -1: where an activation
  /// goes forward and a gradient goes back.
  int readerOf(int value) const {
    const int reader = stageOf(value) + (value % 2 == 0 ? 1 : -1);
    return reader < 0 || reader >= problem.stages ? -1 : problem.rankOf(reader);
  }

private:
  const Problem &problem;
};

} // namespace accel::pipeline

#endif // ACCEL_PASSES_PIPELINESCHEDULES_READS_H
