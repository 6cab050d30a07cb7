//===- StepModels.h - Small step models for tests ---------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TEST_UNIT_STEPMODELS_H
#define ACCEL_TEST_UNIT_STEPMODELS_H

#include "passes/FrameworkSteps/StepEvaluator.h"

#include <random>

namespace accel::stepmodels {

/// What a configuration says of how a step is run, without MLIR.
struct Settings {
  FrameworkKind executor = FrameworkKind::Fsdp2;
  plan::Mesh mesh = plan::Mesh::dataParallel();
  int64_t ranksPerNode = 1;
  plan::DType loaded = plan::DType::F32; // parameters as they are loaded
  bool upcast = false;                   // trainable ones become fp32
  bool upcastFrozen = false;             // the others too
  std::optional<plan::DType> param, reduce, output; // the precision policy
  bool autocast = false;
  bool checkpointLayers = false; // each layer is recomputed
  bool checkpointDefault = true; // accel-run: pointwise operators are
  bool offloadLayerInputs = false;
  bool offloadParameters = false, offloadOptimizer = false;
  int64_t accumulation = 1;
  bool reduceEachMicroBatch = true;
  int64_t forwardPrefetch = 1, backwardPrefetch = 1;
  OptimizerKernel optimizer = OptimizerKernel::Foreach;
  UpdateRule update = adamwRule();
  bool clipGradients = false;
  int zeroStage = 2;
  ZeroBuffers zero;
  std::string torchVersion = "2.15", accelerateVersion = "1.15";
};

/// The candidate that runs the step as the settings say: the model's own units
/// and their resharding, dtypes as the executor and its versions derive them.
Candidate configuredCandidate(const StepModel &model, const Settings &settings);

/// `layers` calls of one kind with one parameter of `shape` each, after
/// another; no embedding, no head; every layer a unit.
StepModel uniformModel(int64_t layers, std::vector<int64_t> shape,
                       int64_t saved, int64_t gradientItem = 2);
/// No prefetch beyond one, all in fp32, reduced each micro-batch.
Candidate uniformCandidate(const StepModel &model, FrameworkKind executor);
int64_t batchBytes(const StepModel &model);
int64_t persistentOf(const StepModel &model, const Target &target,
                     const Settings &settings);

/// The accelerator h100-sxm-80gb.
Target h100();

/// An embedding, layers and a head with a loss, of random sizes and variants.
StepModel randomModel(std::mt19937 &random);
/// Any executor with settings that it accepts.
Candidate randomCandidate(const StepModel &model, std::mt19937 &random);

} // namespace accel::stepmodels

#endif // ACCEL_TEST_UNIT_STEPMODELS_H
