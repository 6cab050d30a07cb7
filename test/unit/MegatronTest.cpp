//===- MegatronTest.cpp - What Megatron's ranks hold and wait for ---------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Bytes are those of Korthikanti et al., "Reducing Activation Recomputation in
// Large Transformer Models" (arXiv:2205.05198), and bubbles those of Narayanan
// et al. (arXiv:2104.04473).
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/Megatron.h"
#include "passes/Pipeline/Phases.h"
#include "passes/Validate/RunJob.h"
#include "test/unit/DecidedRows.h"

#include <gtest/gtest.h>

using namespace accel;
using namespace accel::validate;

namespace {

constexpr int64_t tokens = 2048, hidden = 12288, heads = 96;

/// GPT-3 on 8 GPUs of one node.
RunRow gptRow() {
  RunRow row;
  row.id = "t1";
  row.model = "gpt3-175B";
  row.layers = 8;
  row.gpu = "A100-80GB";
  row.framework = "Megatron-LM";
  row.sharding = "none";
  row.precision = "fp16";
  row.checkpointing = "none";
  row.source = "arXiv:2205.05198";
  row.gpus = 8;
  row.sequence = tokens;
  row.microBatch = 1;
  row.globalBatch = 64;
  row.tensorParallel = 8;
  return row;
}

double layerBytes(const RunRow &row) {
  return validate::layerBytes(stepOf(row));
}

/// Equations 2, 4 and 6, in units of s b h bytes.
TEST(Megatron, SavedBytesOfALayer) {
  const double unit = static_cast<double>(tokens * hidden);
  const double scores = 5.0 * heads * tokens / hidden, t = 8;
  RunRow row = gptRow();
  EXPECT_NEAR(layerBytes(row) / unit, 10 + 24 / t + scores / t, 0.6);
  row.checkpointing = "selective";
  EXPECT_NEAR(layerBytes(row) / unit, 10 + 24 / t, 0.6);
  row.checkpointing = "selective+SP";
  EXPECT_NEAR(layerBytes(row) / unit, 34 / t, 0.6);
  row.checkpointing = "full";
  EXPECT_NEAR(layerBytes(row) / unit, 2, 0.01);
}

/// Sequence parallelism shares what context parallelism has shared already: of
/// a checkpointed layer its input.
TEST(Megatron, SequencesAreSharedTwice) {
  RunRow row = gptRow();
  row.checkpointing = "full";
  row.attention = "TE"; // with sequence parallelism
  row.gpus = 16;
  for (int64_t context : {1, 2}) {
    row.contextParallel = context;
    EXPECT_NEAR(layerBytes(row) / static_cast<double>(tokens * hidden),
                2.0 / (8.0 * static_cast<double>(context)), 0.001);
  }
}

StepPrediction predict(const RunRow &row) {
  const DecidedStep step = stepOf(row);
  StepEvaluator evaluator(*step.model, *shipped("a100-80gb"));
  return evaluator.evaluate(step.candidate, {.detail = true});
}

double bubbleOf(const RunRow &row) {
  const StepPrediction step = predict(row);
  for (const Exposed &exposed : step.exposed)
    if (exposed.cause == "pipeline bubble and transfers")
      return exposed.seconds / (step.stepSeconds - exposed.seconds);
  return 0;
}

/// (p - 1) / m of what is computed, and less by the number of chunks.
TEST(Megatron, BubblesOfAPipeline) {
  RunRow row = gptRow();
  row.tensorParallel = 1;
  row.pipelineParallel = 4;
  row.gpus = 4;
  row.globalBatch = 16;
  // Embedding and head make the stages uneven, and transfers are waited for.
  const double alone = bubbleOf(row);
  EXPECT_GT(alone, 3.0 / 16);
  EXPECT_LT(alone, 3.0 / 16 + 0.15);
  row.sharding = "VP=2";
  EXPECT_LT(bubbleOf(row), alone);
}

/// The first rank holds as many micro-batches as there are stages.
TEST(Megatron, MicroBatchesInFlight) {
  RunRow row = gptRow();
  row.tensorParallel = 1;
  row.pipelineParallel = 4;
  row.gpus = 4;
  const double layer = static_cast<double>(tokens * hidden) *
                       (34 + 5.0 * heads * tokens / hidden);
  row.globalBatch = 1;
  const auto one = static_cast<double>(predict(row).peakBytes);
  row.globalBatch = 16;
  const auto all = static_cast<double>(predict(row).peakBytes);
  // With one micro-batch the last rank's logits are above what the first holds.
  EXPECT_GT((all - one) / layer, 2);
  EXPECT_LT((all - one) / layer, 6) << "2 layers, 3 further of them";
}

/// Layers, or layers with embedding and head, divide among the stages.
TEST(Megatron, StagesOfLayers) {
  StepModel model;
  auto calls = [&](int layers) {
    model.calls.assign(static_cast<size_t>(layers) + 2, StepCall());
    for (int i = 1; i <= layers; ++i)
      model.calls[i].layer = true;
  };
  using Ranges = std::vector<std::pair<int, int>>;
  calls(4);
  EXPECT_EQ(stagesOf(model, 2), (Ranges{{0, 3}, {3, 6}}));
  calls(6); // 126 of Llama-3.1-405B in small: (6 + 2) / 4
  EXPECT_EQ(stagesOf(model, 4), (Ranges{{0, 2}, {2, 4}, {4, 6}, {6, 8}}));
  EXPECT_EQ(
      stagesOf(model, 8), // 126 of it on 128
      (Ranges{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}, {6, 7}, {7, 8}}));
  calls(5);
  EXPECT_TRUE(stagesOf(model, 4).empty());
  EXPECT_EQ(stagesOf(model, 3, 1), (Ranges{{0, 3}, {3, 5}, {5, 7}}));
  EXPECT_TRUE(stagesOf(model, 3, 2).empty()) << "3 layers on 2 stages";
  EXPECT_TRUE(stagesOf(model, 1, 5).empty()) << "no other stage";
  EXPECT_TRUE(stagesOf(model, 0).empty());
}

/// The distributed optimizer leaves a rank its part of the fp32 copies and
/// states: 6 + 12 / d bytes of a parameter with bf16, for 18.
TEST(Megatron, DistributedOptimizer) {
  RunRow row = gptRow();
  row.precision = "bf16";
  row.tensorParallel = 1;
  row.layers = 1;
  row.globalBatch = 8;
  auto states = [&](const char *sharding) {
    row.sharding = sharding;
    const DecidedStep step = stepOf(row);
    StepLayout layout(*step.model, *shipped("a100-80gb"));
    layout.prepare(step.candidate, RankClass::First);
    const MegatronParameters held(layout, step.candidate);
    EXPECT_NEAR(static_cast<double>(held.gradientBytes) /
                    static_cast<double>(held.parameterBytes),
                2, 0.001);
    return static_cast<double>(held.stateBytes) /
           static_cast<double>(held.parameterBytes) * 2;
  };
  EXPECT_NEAR(states("none"), 12, 0.01);
  EXPECT_NEAR(states("dist-optimizer"), 12.0 / 8, 0.01);
}

/// Of an optimizer on the host: fp32 gradients go there and fp32 parameters
/// come back, and between them the host moves 28 bytes a parameter.
TEST(Megatron, OptimizerOnTheHost) {
  RunRow row = gptRow();
  row.sharding = "dist-optimizer";
  row.gpus = 16;
  DecidedStep step = stepOf(row);
  const Target target = *shipped("a100-80gb");
  StepLayout layout(*step.model, target);
  layout.prepare(step.candidate, RankClass::First);
  const MegatronParameters device(layout, step.candidate);
  step.candidate.offloadOptimizer = true;
  const MegatronParameters host(layout, step.candidate);
  EXPECT_EQ(device.wholeUpdate(), device.update);
  EXPECT_EQ(host.stateBytes, device.stateBytes);
  EXPECT_LT(host.update, device.update);
  const double parameters = static_cast<double>(host.stateBytes) / 12;
  EXPECT_NEAR(static_cast<double>(host.onHost) * 1e-12 *
                  target.host.updateBytesPerSecond / (28 * parameters),
              1, 1e-3);
  EXPECT_NEAR(static_cast<double>(host.toHost) /
                  static_cast<double>(layout.hostTime(4 * parameters)),
              1, 1e-3);
  EXPECT_EQ(host.toHost, host.fromHost);
  EXPECT_EQ(host.wholeUpdate(),
            host.update + host.toHost + host.onHost + host.fromHost);
}

RunRow fsdpRow(const char *sharding) {
  RunRow row;
  row.id = "t1";
  row.model = "llama3-8b";
  row.layers = 8;
  row.gpu = "H100";
  row.framework = "Megatron-Bridge/26.04";
  row.sharding = sharding;
  row.precision = "bf16";
  row.gpus = 8;
  row.sequence = 4096;
  row.microBatch = 1;
  row.globalBatch = 16;
  return row;
}

/// Megatron's FSDP leaves a rank its part of weights and gradients too, and
/// gathers two layers at a time.
TEST(MegatronFsdp, Parts) {
  auto held = [](const char *sharding) {
    const DecidedStep step = stepOf(fsdpRow(sharding));
    StepLayout layout(*step.model, *shipped("h100-sxm-80gb"));
    layout.prepare(step.candidate, RankClass::First);
    return MegatronParameters(layout, step.candidate);
  };
  const MegatronParameters whole = held("dist-optimizer"),
                           parts = held("FSDP=8");
  EXPECT_NEAR(static_cast<double>(whole.parameterBytes) /
                  static_cast<double>(parts.parameterBytes),
              8, 0.001);
  EXPECT_NEAR(static_cast<double>(whole.gradientBytes) /
                  static_cast<double>(parts.gradientBytes),
              8, 0.001);
  EXPECT_EQ(whole.stateBytes, parts.stateBytes);
  EXPECT_GT(whole.gather, 0);
  EXPECT_EQ(parts.gather, 0); // each layer's own
  EXPECT_EQ(parts.placeholderBytes, 0);
}

StepPrediction predict(RunRow row, int offloaded) {
  DecidedStep step = stepOf(row);
  step.candidate.megatron.offloadedLayers = offloaded;
  return StepEvaluator(*step.model, *shipped("h100-sxm-80gb"))
      .evaluate(step.candidate);
}

/// What the first layers save is on the host while the others compute; the copy
/// is hidden as long as the whole forward and backward are longer.
TEST(MegatronFsdp, ActivationsOfTheFirstLayersOnTheHost) {
  const RunRow row = fsdpRow("FSDP=8");
  const double layer = layerBytes(row);
  const StepPrediction all = predict(row, 0), half = predict(row, 4);
  EXPECT_EQ(all.hostBytes, 0);
  EXPECT_NEAR(static_cast<double>(half.hostBytes), 4 * layer, 0.05 * layer);
  const auto saved = static_cast<double>(all.peakBytes - half.peakBytes);
  EXPECT_GT(saved, 2 * layer);
  EXPECT_LT(saved, 4.1 * layer);
  EXPECT_GE(half.stepSeconds, all.stepSeconds);
  EXPECT_LT(half.stepSeconds, 1.5 * all.stepSeconds);
}

/// A pipeline beside it is refused by name.
TEST(MegatronFsdp, StagesAreNamed) {
  RunRow row = fsdpRow("FSDP=4");
  row.pipelineParallel = 2;
  EXPECT_NE(interpret(row).skipped.find("stages of a pipeline"),
            std::string::npos);
}

} // namespace
