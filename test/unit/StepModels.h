//===- StepModels.h - Small step models for tests ---------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TEST_UNIT_STEPMODELS_H
#define ACCEL_TEST_UNIT_STEPMODELS_H

#include "passes/Executors/Executor.h"

#include <random>

namespace accel::stepmodels {

/// `layers` calls of one kind with one parameter of `shape` each, after
/// another; no embedding, no head; every layer a unit.
StepModel uniformModel(int64_t layers, std::vector<int64_t> shape,
                       int64_t saved, int64_t gradientItem = 2);
/// No prefetch beyond one, all in fp32, reduced each micro-batch.
Candidate uniformCandidate(const StepModel &model, ExecutorKind executor);
int64_t batchBytes(const StepModel &model);
int64_t persistentOf(const StepModel &model, const Target &target,
                     const ExecutorSettings &settings);

/// An embedding, layers and a head with a loss, of random sizes and variants.
StepModel randomModel(std::mt19937 &random);
/// Any executor with settings that it accepts.
Candidate randomCandidate(const StepModel &model, std::mt19937 &random);

} // namespace accel::stepmodels

#endif // ACCEL_TEST_UNIT_STEPMODELS_H
