//===- TorchtitanMeshTest.cpp - torchtitan's tp and stages ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/Megatron.h"
#include "passes/FrameworkSteps/StageRun.h"
#include "passes/FrameworkSteps/StepEvaluator.h"
#include "passes/Frameworks/Framework.h"
#include "passes/PipelineSchedules/Simulate.h"
#include "passes/Segments/InnerBytes.h"
#include "test/unit/DecidedRows.h"

#include <gtest/gtest.h>

using namespace accel;
using namespace accel::validate;

namespace {

RunRow splitRow() {
  RunRow row = plainRow();
  row.model = "llama3.1-8b";
  row.gpus = 64;
  row.tensorParallel = 8;
  row.sharding = "FSDP2=8";
  row.microBatch = 4;
  row.globalBatch = 32;
  row.checkpointing = "full";
  row.compile = "Y";
  row.layers = 2;
  return row;
}

double forwardSeconds(const RunRow &row) {
  return layerOf(stepOf(row)).compiledForwardSeconds;
}
double backwardSeconds(const RunRow &row) {
  return layerOf(stepOf(row)).compiledBackwardSeconds;
}

/// Tokens are the second dimension of several samples: DTensor copies what it
/// gathers and scatters, and of one sample it does not.
TEST(Torchtitan, DtensorCopiesSeveralSamples) {
  RunRow several = splitRow(), one = splitRow();
  one.microBatch = 1;
  one.sequence = 4 * 8192;
  auto exchanged = [](RunRow row) { // what is no attention
    row.attention = "sdpa";
    const double all = forwardSeconds(row);
    row.tensorParallel = 1;
    row.gpus = 8;
    return all - forwardSeconds(row) / 8;
  };
  // Two gathers and two scatters of 4 x 8192 x 4096 in 16 bits, each copied.
  const double bytes = 4.0 * 8192 * 4096 * 2;
  const Target &target = *shipped("h100-sxm-80gb");
  const double copies = 4 * 2 * bytes / target.memoryBytesPerSecond;
  EXPECT_NEAR(exchanged(several) - exchanged(one), copies, 0.35 * copies);
}

/// A gather hides behind the products that read it, a scatter behind the one
/// that made it; what is kept of the forward hides nothing when it is repeated.
TEST(Torchtitan, ExchangesRunBesideMatmuls) {
  RunRow row = splitRow(), async = splitRow();
  async.sharding = "FSDP2=8+asyncTP";
  EXPECT_LT(forwardSeconds(async), 0.9 * forwardSeconds(row));
  const double all = backwardSeconds(row) - backwardSeconds(async);
  row.checkpointing = async.checkpointing = "selective-op";
  const double kept = backwardSeconds(row) - backwardSeconds(async);
  EXPECT_GT(kept, 0);
  EXPECT_LT(kept, all);
  async.compile = "N";
  EXPECT_TRUE(interpret(async).asyncTensor);
}

/// torchao's tensorwise recipe gathers 8 bits, rowwise 16.
TEST(Torchtitan, GathersOfTensorwiseFp8HaveEightBits) {
  RunRow row = splitRow();
  row.checkpointing = "none";
  auto saved = [&](const char *precision) {
    row.precision = precision;
    return layerBytes(stepOf(row));
  };
  // The gathered inputs of attention and of the gated MLP.
  const double tokens = 4 * 8192, gathered = 2 * tokens * 4096;
  // One scale serves both products of an input, so that 8 bits of it are kept:
  // of the last product's in place of 16, of the attention's result beside 16,
  // which its own backward reads.
  const double inner = tokens * (14336 - 4096) / 8;
  EXPECT_NEAR(saved("fp8-rowwise") - saved("fp8-tensorwise"), gathered + inner,
              0.001 * gathered);
  RunRow wide = splitRow(), narrow = splitRow();
  wide.precision = "fp8-rowwise";
  narrow.precision = "fp8-tensorwise";
  EXPECT_LT(forwardSeconds(narrow), forwardSeconds(wide));
}

//===--- Stages -----------------------------------------------------------===//

RunRow stagedRow() {
  RunRow row = splitRow();
  row.gpus = 128;
  row.tensorParallel = 2;
  row.pipelineParallel = 8;
  row.sharding = "FSDP2=8+1F1B";
  row.microBatch = 16;
  row.globalBatch = 128;
  row.layers = 16;
  return row;
}

TEST(Torchtitan, BatchesAreCutIntoAsManyAsStages) {
  const validate::Run run = interpret(stagedRow());
  EXPECT_EQ(run.skipped, "");
  EXPECT_EQ(run.accumulation, 8);
  EXPECT_EQ(run.microBatch, 2);
  RunRow odd = stagedRow();
  odd.microBatch = 12;
  EXPECT_NE(interpret(odd).skipped.find("does not divide"), std::string::npos);
  odd = stagedRow();
  odd.sharding += "+interleaved";
  EXPECT_NE(interpret(odd).skipped.find("interleaved"), std::string::npos);
}

/// Stages are gathered once a step and hold gradients of all their layers from
/// the first backward on.
TEST(Torchtitan, StagesOfFsdp2) {
  const DecidedStep step = stepOf(stagedRow());
  ASSERT_TRUE(isPipelined(step.candidate));
  for (bool reshards : step.candidate.reshardAfterForward)
    EXPECT_FALSE(reshards);
  const Target &target = *shipped("h100-sxm-80gb");
  StepEvaluator evaluator(*step.model, target);
  const StepPrediction whole = evaluator.evaluate(step.candidate, true);
  double elements = 0;
  for (const StepParameter &parameter : step.model->parameters)
    elements += static_cast<double>(parameter.numel());
  const double stage = elements / 8; // roughly: the ends have the tables
  const auto held = [&](Holding holding) {
    return static_cast<double>(whole.atPeak[static_cast<int>(holding)]);
  };
  EXPECT_GT(held(Holding::Gathered), 0.5 * stage * 2);
  EXPECT_LT(held(Holding::Gathered), 3 * stage * 2);
  EXPECT_GT(held(Holding::Gradients), held(Holding::Gathered) * 1.5);
  // 1F1B with as many micro-batches as stages: n - 1 of 2 n - 1 are idle.
  const auto simulated = simulateStages(*step.model, target, step.candidate);
  EXPECT_EQ(simulated.problem.microBatches, 8);
  double exchanged = 0;
  for (const Exposed &exposed : whole.exposed)
    if (exposed.cause == "exchanges over tp")
      exchanged += exposed.seconds;
  EXPECT_GT(exchanged, 0);
  const double busy = whole.computeSeconds + exchanged;
  EXPECT_GT(whole.stepSeconds, 1.5 * busy);
  EXPECT_LT(whole.stepSeconds, 2.6 * busy);
}

/// What torch's stages hold beside a micro-batch's own tensors, by release: of
/// 4 micro-batches, 7 bytes received and 10 sent, or 100 of logits.
TEST(Torchtitan, TorchStagesByRelease) {
  auto held = [](const char *torch, int64_t sent, int64_t logits) {
    StageCost stage;
    stage.held.receivedBytes = 7;
    stage.held.sentBytes = sent;
    stage.micro.frameBytes = 50;
    stage.micro.forwardPeakBytes = 60;
    stage.micro.peakBytes = 80;
    holdAsTorch(stage, torch, 4, logits);
    const StageHeld &h = stage.held;
    return std::vector<int64_t>{stage.micro.frameBytes,
                                stage.micro.forwardPeakBytes,
                                stage.micro.peakBytes,
                                h.buffers,
                                h.keptByForward,
                                h.keptByBackward,
                                h.lastGradient,
                                h.returned,
                                h.sending};
  };
  using Held = std::vector<int64_t>;
  // The input is a buffer: 4 * (7 + 10) of them.
  EXPECT_EQ(held("2.6", 10, 0), (Held{43, 53, 73, 68, 10, 7, 0, 0, 0}));
  EXPECT_EQ(held("2.8", 10, 0), (Held{53, 53, 83, 68, 0, 7, 0, 0, 0}));
  EXPECT_EQ(held("2.10", 10, 0), (Held{53, 53, 83, 68, 0, 0, 7, 0, 0}));
  EXPECT_EQ(held("2.15", 10, 0), (Held{50, 60, 90, 0, 0, 0, 7, 0, 10}));
  EXPECT_EQ(held("2.6", 0, 100), (Held{143, 53, 173, 28, 0, 7, 0, 100, 0}));
  EXPECT_EQ(held("2.10", 0, 100), (Held{143, 53, 173, 28, 0, 0, 7, 0, 0}));
  EXPECT_EQ(held("2.15", 0, 100), (Held{150, 60, 180, 0, 0, 7, 7, 0, 0}));
}

/// The rank that holds most, tensor by tensor, by each release: at its peak
/// what is counted in sums, and the same in each step after the first.
TEST(Torchtitan, StagesAreRecorded) {
  const DecidedStep step = stepOf(stagedRow());
  const Target machine = *shipped(interpret(stagedRow()).target);
  int recorded = 0;
  for (const char *torch : {"2.6", "2.8", "2.10", "2.15"})
    for (const auto &[stages, microBatches] :
         {std::pair(2, 2), {2, 40}, {4, 4}, {4, 9}, {8, 3}, {8, 99}}) {
      Candidate candidate = step.candidate;
      candidate.mesh.resize("pp", stages);
      candidate.accumulation = microBatches;
      candidate.torchVersion = torch;
      const std::string what = std::string(torch) + ", " +
                               std::to_string(stages) + " stages, " +
                               std::to_string(microBatches);
      StepEvaluator evaluator(*step.model, machine);
      const auto problem = evaluator.record(candidate, 4);
      ASSERT_TRUE(problem) << what;
      ASSERT_EQ(replay::verify(*problem), "") << what;
      const StepPrediction p = evaluator.evaluate(candidate);
      const replay::Result result = replay::solve(*problem, {});
      EXPECT_EQ(replay::verify(*problem, {}, result), "") << what;
      // Of the forward's thread and of autograd's, which sums leave to the
      // context.
      const int64_t workspaces = frameworks::keepsWorkspaces(torch)
                                     ? 2 * gemmWorkspace(machine.capability)
                                     : 0;
      const auto peak = static_cast<double>(p.peakBytes + workspaces);
      EXPECT_NEAR(static_cast<double>(result.statistics.allocatedPeak), peak,
                  1e-3 * peak)
          << what;
      EXPECT_EQ(result.reservedPeakByStep[2], result.reservedPeakByStep[3]);
      ++recorded;
    }
  EXPECT_EQ(recorded, 24);
}

/// generate_split_points gives what cannot be divided to the stages after the
/// first; later releases count the ends as layers.
TEST(Torchtitan, LayersOfStages) {
  const DecidedStep step = stepOf(stagedRow());
  auto layers = [&](int stages, const char *torch) {
    Candidate candidate = step.candidate;
    candidate.mesh.resize("pp", stages);
    candidate.torchVersion = torch;
    std::vector<int> counts;
    for (const auto &[first, end] : stagesOf(*step.model, candidate)) {
      counts.push_back(0);
      for (int c = first; c < end; ++c)
        counts.back() += step.model->calls[c].layer;
    }
    return counts;
  };
  EXPECT_EQ(layers(8, "2.6"), std::vector<int>(8, 2));
  EXPECT_EQ(layers(3, "2.6"), (std::vector<int>{5, 6, 5}));
  EXPECT_EQ(layers(4, "2.10"), (std::vector<int>{4, 5, 4, 3}));
  EXPECT_EQ(layers(3, "2.10"), (std::vector<int>{5, 6, 5}));
  EXPECT_TRUE(layers(20, "2.6").empty());
}

} // namespace
