//===- TrainersTest.cpp - What trainers' models save and decide -----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Pipeline/Phases.h"
#include "passes/Validate/RunJob.h"
#include "passes/Validate/Validate.h"
#include "test/unit/DecidedRows.h"

#include <gtest/gtest.h>

using namespace accel;
using namespace accel::validate;

namespace {

int64_t savedBytes(const SegmentVariant &v) {
  return v.savedBytes + v.savedInputBytes;
}

/// A Llama 8B block of torchtitan with fused norms: what saved_tensors_hooks
/// count (docs/accuracy.md). Keys and values are copied for each query head.
TEST(Trainers, SavedBytesAreThoseOfAutograd) {
  RunRow row = plainRow();
  const int64_t T = 8192, D = 4096, KD = 1024, F = 14336, H = 32;
  auto saved = [&](const char *checkpointing, const char *compile) {
    row.checkpointing = checkpointing;
    row.compile = compile;
    // The tables of rotary positions are inputs that all layers share.
    const int64_t tables = 2 * T * 128 * 2;
    return savedBytes(layerOf(stepOf(row))) - tables;
  };
  EXPECT_EQ(saved("none", "N"), T * (16 * D + 8 * F + 4 * H + 8));
  // Every second matmul, and the attention with its sums.
  EXPECT_EQ(saved("selective", "N"), T * (8 * D + 2 * KD + 2 * F + 4 * H));
  EXPECT_EQ(saved("full", "N"), T * 2 * D);
  // One kernel of SiLU and the product: its result is recomputed in it.
  EXPECT_EQ(saved("none", "Y"), T * (16 * D + 6 * F + 4 * H + 8));
  EXPECT_EQ(saved("full", "Y"), T * 2 * D);
}

TEST(Trainers, RecomputationCostsItsForward) {
  RunRow row = plainRow();
  row.checkpointing = "full";
  const DecidedStep eager = stepOf(row);
  const SegmentVariant &full = layerOf(eager);
  EXPECT_GT(full.recomputeSeconds, 0.6 * full.forwardSeconds);
  EXPECT_LT(full.recomputeSeconds, full.forwardSeconds);
  row.compile = "Y";
  const DecidedStep compiled = stepOf(row);
  EXPECT_TRUE(compiled.candidate.compiled);
  EXPECT_LT(layerOf(compiled).compiledForwardSeconds,
            0.97 * full.forwardSeconds);
  EXPECT_LT(layerOf(compiled).forwardOps, full.forwardOps);
  row.precision = "fp8";
  EXPECT_LT(layerOf(stepOf(row)).compiledForwardSeconds,
            0.8 * layerOf(compiled).compiledForwardSeconds);
}

TEST(Trainers, LogitsOfTheLoss) {
  RunRow row = plainRow();
  const int64_t logits = 8192LL * 128256;
  const DecidedStep step = stepOf(row);
  const SegmentKind &head = step.model->kinds.back();
  ASSERT_TRUE(head.loss);
  const SegmentVariant &wide = head.variants[0];
  // bf16, fp32 and log_softmax together; log_softmax stays.
  EXPECT_GE(wide.forwardPeakBytes, logits * (2 + 4 + 4));
  EXPECT_LT(wide.forwardPeakBytes, logits * 11);
  EXPECT_GE(wide.savedBytes, logits * 4);
  EXPECT_LT(wide.savedBytes, logits * 5);
  // The gradient does not fit where bf16 logits and their copy were.
  EXPECT_NEAR(double(head.lossFragmentBytes) / double(logits * 2), 1, 0.1);
  EXPECT_TRUE(step.candidate.lossOutside);
  row.compile = "Y";
  const SegmentVariant compiled =
      stepOf(row).model->kinds.back().variants.front();
  EXPECT_LT(compiled.forwardPeakBytes, logits * 3) << "bf16 logits alone";
  EXPECT_GE(compiled.lossPeakBytes, logits * 2) << "and their gradient";
  row.framework = "llm-foundry";
  row.model = "mpt-7b";
  row.compile = "";
  const SegmentVariant inPlace =
      stepOf(row).model->kinds.back().variants.front();
  EXPECT_LT(inPlace.forwardPeakBytes, 8192LL * 50368 * 3);
  EXPECT_LT(inPlace.lossPeakBytes, 8192LL * 50368) << "in place";
}

TEST(Trainers, UnitsOfTorchtitan) {
  RunRow row = plainRow();
  const DecidedStep now = stepOf(row);
  EXPECT_EQ(now.candidate.numUnits(), 34) << "blocks, embedding, norm and head";
  EXPECT_EQ(now.candidate.rootUnit, -1);
  EXPECT_TRUE(now.candidate.reshardAfterForward[32]) << "the last block";
  EXPECT_FALSE(now.candidate.reshardAfterForward[33]);
  EXPECT_EQ(now.candidate.dtypes.storage, plan::DType::F32);
  EXPECT_EQ(now.candidate.dtypes.compute, plan::DType::BF16);
  EXPECT_EQ(now.candidate.dtypes.reduce, plan::DType::F32);
  row.source = "benchmarks/llama3_h100_202412_torchtitan.md";
  const DecidedStep before = stepOf(row);
  EXPECT_EQ(before.candidate.numUnits(), 33) << "blocks and the root";
  ASSERT_GE(before.candidate.rootUnit, 0);
  EXPECT_FALSE(before.candidate.reshardAfterForward[before.candidate.rootUnit]);
  int kept = 0;
  for (bool reshards : before.candidate.reshardAfterForward)
    kept += !reshards;
  EXPECT_EQ(kept, 2) << "the last block too";
}

TEST(Trainers, CheckpointsAShareOfTheLayers) {
  RunRow row = plainRow();
  row.framework = "fms-fsdp(FSDP1)";
  row.sharding = "FSDP";
  row.checkpointing = "selective-4";
  const DecidedStep step = stepOf(row);
  int recomputed = 0;
  for (size_t c = 0; c < step.model->calls.size(); ++c)
    recomputed += step.model->kinds[step.model->calls[c].kind]
                      .variants[step.candidate.variants[c]]
                      .name == "full";
  EXPECT_EQ(recomputed, 8);
  EXPECT_EQ(step.candidate.executor, FrameworkKind::Fsdp1);
}

TEST(Trainers, CountTheParametersOfPublishedModels) {
  auto count = [](const char *model, const char *framework, int64_t length) {
    RunRow row = plainRow();
    row.model = model;
    row.framework = framework;
    row.sequence = length;
    const DecidedStep step = stepOf(row);
    int64_t sum = 0;
    for (const StepParameter &p : step.model->parameters)
      sum += p.numel();
    return static_cast<double>(sum) * 1e-9;
  };
  EXPECT_NEAR(count("llama3.1-8b", "torchtitan", 128), 8.030, 0.001);
  EXPECT_NEAR(count("llama2-7b", "torchtitan", 128), 6.738, 0.001);
  EXPECT_NEAR(count("llama3.1-405b", "torchtitan", 128), 405.85, 0.01);
  EXPECT_NEAR(count("qwen2.5-7b", "torchtitan", 128), 7.616, 0.001);
  EXPECT_NEAR(count("mpt-7b", "llm-foundry", 2048), 6.659, 0.001);
  EXPECT_NEAR(count("mpt-30b", "llm-foundry", 8192), 30.019, 0.001);
}

/// A config.json by name goes before what the table and its names say.
TEST(Trainers, ModelsByConfig) {
  RunRow row = plainRow();
  row.model = "own";
  row.checkpointing = "selective-2";
  const auto source = [](const std::string &name) {
    return name == "own" ? std::optional<OwnConfig>(
                               {R"({"model_type": "qwen3", "hidden_size": 256,
                         "intermediate_size": 512, "num_hidden_layers": 2,
                         "num_attention_heads": 4, "num_key_value_heads": 2,
                         "head_dim": 64, "vocab_size": 1000})",
                                "models/own.json"})
                         : std::nullopt;
  };
  const RowResult result = predictRow(row, shipped, source);
  EXPECT_EQ(result.skipped, "");
  EXPECT_GT(result.prediction.peakBytes, 0);
  const auto broken = [](const std::string &) {
    return std::optional<OwnConfig>(
        {R"({"model_type": "llama", "hidden_size": -1})", "models/own.json"});
  };
  std::string why = predictRow(row, shipped, broken).skipped;
  EXPECT_NE(why.find("hidden_size"), std::string::npos) << why;
  EXPECT_TRUE(why.starts_with("models/own.json: ")) << why;
  const auto cut = [](const std::string &) {
    return std::optional<OwnConfig>({"{\"model_type", "models/own.json"});
  };
  for (const char *framework : {"torchtitan", "Megatron-Bridge/26.06"}) {
    row.framework = framework;
    why = predictRow(row, shipped, cut).skipped;
    EXPECT_TRUE(why.starts_with("models/own.json: ")) << why;
  }
}

} // namespace
