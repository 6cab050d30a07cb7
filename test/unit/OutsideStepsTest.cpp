//===- OutsideStepsTest.cpp - First steps and evaluations -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/OutsideSteps.h"
#include "test/unit/StepModels.h"

#include "gtest/gtest.h"

using namespace accel;
using namespace accel::stepmodels;

namespace {

/// torch's optimizers make their states in the first update, beside all
/// gradients; DeepSpeed has them before.
TEST(OutsideSteps, FirstStepIsWithoutStatesUntilItsUpdate) {
  const Target machine = h100();
  // 64 MiB of parameters, 128 of states.
  constexpr int64_t states = int64_t(128) << 20;
  for (int64_t saved : {int64_t(256) << 20, int64_t(0)}) {
    const StepModel model =
        uniformModel(16, {1024, 1024}, saved, /*gradientItem=*/4);
    Candidate candidate = uniformCandidate(model, FrameworkKind::Single);
    candidate.optimizer = OptimizerKernel::Fused;
    const int64_t peak =
        StepEvaluator(model, machine).evaluate(candidate).peakBytes;
    const std::optional<FirstStep> first = firstStep(model, machine, candidate);
    ASSERT_TRUE(first);
    if (saved)
      EXPECT_EQ(first->peakBytes, peak - states);
    else // the update has the states and the gradients
      EXPECT_GT(first->peakBytes, peak - (int64_t(1) << 20));
    EXPECT_LE(first->peakBytes, peak);
    EXPECT_EQ(first->passingBytes, 0);
  }
  const StepModel model = uniformModel(16, {1024, 1024}, int64_t(256) << 20);
  const Candidate candidate = uniformCandidate(model, FrameworkKind::Deepspeed);
  EXPECT_EQ(firstStep(model, machine, candidate)->peakBytes,
            StepEvaluator(model, machine).evaluate(candidate).peakBytes);
}

/// The flat gradients of FSDP1 go before the next forward, and before a state
/// is read.
TEST(OutsideSteps, FlatGradientsPass) {
  constexpr int64_t layers = 6, shards = layers * (1 << 20) / 8 * 4;
  const StepModel model = uniformModel(layers, {1024, 1024}, 0);
  Candidate candidate = uniformCandidate(model, FrameworkKind::Fsdp1);
  candidate.mesh.resize("dp_shard", 8);
  const Target machine = h100();
  EXPECT_EQ(StepEvaluator(model, machine).evaluate(candidate).persistentBytes,
            4 * shards);
  EXPECT_EQ(firstStep(model, machine, candidate)->passingBytes, shards);
  // An evaluation gathers a unit, and one ahead of it.
  const int64_t held = *evaluationBytes(model, machine, candidate, 1);
  EXPECT_GE(held, 4 << 20);
  EXPECT_LE(held, (2 * 4 << 20) + 4 * 512);
}

/// Nothing is saved: the batch, a layer's input, and what it makes, by the way
/// of computing it that holds least.
TEST(OutsideSteps, EvaluationSavesNothing) {
  StepModel model = uniformModel(4, {64, 64}, /*saved=*/int64_t(1) << 30);
  SegmentVariant &full =
      model.kinds[0].variants.emplace_back(model.kinds[0].variants[0]);
  full.name = "full";
  full.savedBytes = 0;
  full.forwardPeakBytes = 1 << 20;
  const Candidate candidate = uniformCandidate(model, FrameworkKind::Single);
  const Target machine = h100();
  EXPECT_EQ(evaluationBytes(model, machine, candidate, 1), (1 << 20) + 2 * 512);
  // A head's logits, in parts.
  model.kinds.push_back(model.kinds[0]);
  model.kinds[1].loss = true;
  model.kinds[1].logitsBytes = 8 << 20;
  for (SegmentVariant &variant : model.kinds[1].variants)
    variant.forwardPeakBytes = 64 << 20;
  model.calls.back().kind = 1;
  EXPECT_EQ(evaluationBytes(model, machine, candidate, 1), (8 << 20) + 5 * 512);
  EXPECT_EQ(evaluationBytes(model, machine, candidate, 16),
            (1 << 20) + 2 * 512);
}

} // namespace
