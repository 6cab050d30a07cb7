//===- MegatronExpertsTest.cpp - Experts, 8 bits and overlap --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Cost/CollectiveCost.h"
#include "passes/FrameworkSteps/Megatron.h"
#include "passes/StepModel/HostQueue.h"
#include "passes/StepModel/MegatronLayers.h"
#include "passes/Validate/Recipes.h"
#include "passes/Validate/Validate.h"
#include "test/unit/DecidedRows.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace accel;
using namespace accel::validate;

namespace {

RunRow bridgeRow(const char *model) {
  RunRow row;
  row.id = "t1";
  row.model = model;
  row.gpu = "H100";
  row.framework = "Megatron-Bridge/26.06";
  row.sharding = "dist-optimizer";
  row.precision = "bf16";
  row.gpus = 8;
  row.sequence = 4096;
  row.microBatch = 1;
  row.globalBatch = 64;
  return row;
}

MegatronParameters held(const DecidedStep &step, StepLayout &layout) {
  layout.prepare(step.candidate, RankClass::First);
  return MegatronParameters(layout, step.candidate);
}

/// 128 experts of 768 with 8 for a token: rows as they are multiplied, what the
/// first product gives, the activation, and the router's tables.
TEST(MegatronExperts, SavedBytesOfALayer) {
  RunRow row = bridgeRow("Qwen3_30B_a3B");
  row.layers = 2;
  const double t = 4096, h = 2048, q = 32 * 128, kv = 4 * 128, f = 768, k = 8,
               e = 128;
  // Norms' inputs and outputs, queries and keys before and after their norms
  // and rotation, values, attention and its statistics.
  const double attention = 2 * (2 * h + 2 * h + 3 * q + 2 * 3 * kv) + 4 * 32;
  const double mixture =
      k * (2 * h + 2 * 2 * f + 2 * f + 4) + 4 * (2 * e + 1) + 4 * e + e;
  for (const char *sharding : {"EP=8", "EP=4", "dist-optimizer"}) {
    row.sharding = sharding;
    EXPECT_NEAR(layerBytes(stepOf(row)) / (t * (attention + mixture)), 1, 0.03)
        << sharding;
  }
}

/// A rank has its experts' parameters, gradients and states, and shares those
/// with the ranks that have the same ones.
TEST(MegatronExperts, ParametersOfARank) {
  RunRow row = bridgeRow("Qwen3_30B_a3B");
  row.layers = 2;
  row.gpus = 16;
  auto parametersOf = [&](const char *sharding) {
    row.sharding = sharding;
    const DecidedStep step = stepOf(row);
    StepLayout layout(*step.model, *shipped("h100-sxm-80gb"));
    return held(step, layout);
  };
  const double experts = 2.0 * 128 * 3 * 768 * 2048;
  const MegatronParameters all = parametersOf("dist-optimizer"),
                           eighth = parametersOf("EP=8");
  EXPECT_NEAR(static_cast<double>(all.parameterBytes - eighth.parameterBytes) /
                  (2 * experts * 7 / 8),
              1, 1e-3);
  EXPECT_EQ(all.expertRanks.ranks, 16);
  EXPECT_EQ(eighth.expertRanks.ranks, 2);
  EXPECT_EQ(eighth.ranks.ranks, 16);
  // Each is on one rank of all, whoever shares it.
  EXPECT_NEAR(static_cast<double>(all.stateBytes) /
                  static_cast<double>(eighth.stateBytes),
              1, 1e-3);
}

/// With expert_tensor_parallel_size 1 ranks of tp have whole experts and a part
/// of the rows.
TEST(MegatronExperts, TensorParallelRanksHaveWholeExperts) {
  RunRow row = bridgeRow("Qwen3_30B_a3B");
  row.layers = 2;
  row.sharding = "EP=4";
  const DecidedStep alone = stepOf(row);
  row.tensorParallel = 2;
  const DecidedStep split = stepOf(row);
  for (const StepModel *model : {alone.model.get(), split.model.get()})
    for (const StepParameter &parameter : model->parameters)
      if (parameter.expert)
        EXPECT_EQ(parameter.numel(),
                  128 / 4 * 2048 * 768 * (parameter.shape[1] == 2048 ? 1 : 2));
  EXPECT_LT(layerBytes(split), 0.6 * layerBytes(alone));
}

TEST(MegatronExperts, WhatDoesNotDivideIsSaid) {
  RunRow row = bridgeRow("Qwen3_30B_a3B");
  row.layers = 2;
  row.sharding = "EP=3";
  EXPECT_NE(interpret(row).skipped.find("does not divide the 8 GPUs"),
            std::string::npos);
  row.gpus = 24;
  row.globalBatch = 24;
  const ValidationResult result = validateRuns({row}, shipped);
  ASSERT_EQ(result.rows.size(), 1u);
  EXPECT_NE(result.rows.front().skipped.find(
                "128 experts are not divided by 3 ranks"),
            std::string::npos)
      << result.rows.front().skipped;
}

/// A token of 8 experts on 8 nodes reaches 8 (1 - (7/8)^8) of them.
TEST(MegatronExperts, Dispatch) {
  const Target target = *shipped("h100-sxm-80gb");
  const Dispatch each = {4096, 8, 4096, false}, once = {4096, 8, 4096, true};
  EXPECT_EQ(dispatchSeconds(target, {1, 1}, each), 0);
  const double bytes = 4096.0 * 4096;
  EXPECT_NEAR(dispatchSeconds(target, {8, 8}, each),
              target.insideNode.latencySeconds +
                  bytes * 7 / target.insideNode.bytesPerSecond,
              1e-9);
  const double reached = 8 * (1 - std::pow(7.0 / 8, 8));
  EXPECT_NEAR(dispatchSeconds(target, {64, 8}, once),
              target.betweenNodes.latencySeconds +
                  bytes * reached * 7 / 8 / target.betweenNodes.bytesPerSecond,
              1e-9);
  EXPECT_GT(dispatchSeconds(target, {64, 8}, each),
            1.5 * dispatchSeconds(target, {64, 8}, once));
}

/// What Megatron calls the mixture's activation, and norms that are kernels of
/// their own, is made again in the backward: their results are not held.
TEST(MegatronRecompute, DiscardsWhatModulesGive) {
  RunRow row = bridgeRow("Qwen3_30B_a3B");
  row.layers = 2;
  row.sharding = "EP=8";
  const double t = 4096, h = 2048, f = 768, k = 8,
               all = layerBytes(stepOf(row));
  row.checkpointing = "selective(moe_act)";
  EXPECT_NEAR((all - layerBytes(stepOf(row))) / (2 * t * k * f), 1, 1e-3);
  // The norm before the mixture; that before attention is in its projection.
  row.checkpointing = "selective(layernorm)";
  EXPECT_NEAR((all - layerBytes(stepOf(row))) / (2 * t * h), 1, 1e-3);
  // Nothing inside of the mixture, but its input.
  row.checkpointing = "selective(moe)";
  const double mixture = layerBytes(stepOf(row));
  EXPECT_LT(mixture, all - t * k * 2 * (h + 3 * f));
  row.checkpointing = "selective(layernorm moe)";
  EXPECT_NEAR((mixture - layerBytes(stepOf(row))) / (2 * t * h), 1, 1e-3);
}

/// Queries, keys and values of latent attention, 128 heads of 192 and 128, come
/// from 1536 and 576 elements of a token again.
TEST(MegatronRecompute, LatentAttentionsProjections) {
  RunRow row = bridgeRow("DeepSeekV3");
  row.layers = 2;
  row.sharding = "EP=8";
  const double all = layerBytes(stepOf(row));
  row.checkpointing = "selective(mla_up_proj)";
  const DecidedStep again = stepOf(row);
  EXPECT_GT(all - layerBytes(again), 4096 * 2 * 128.0 * (2 * 192 + 128));
  const StepModel &model = *again.model;
  for (size_t c = 0; c < model.calls.size(); ++c)
    if (model.calls[c].layer) {
      const auto &variants = model.kinds[model.calls[c].kind].variants;
      EXPECT_GT(variants[again.candidate.variants[c]].recomputeSeconds, 0);
    }
}

TEST(MegatronRecompute, UnknownModulesAreNamed) {
  RunRow row = bridgeRow("Qwen3_30B_a3B");
  row.sharding = "EP=8";
  row.checkpointing = "selective(moe_router)";
  const std::string why = interpret(row).skipped;
  EXPECT_NE(why.find("'moe_router' of the column ac is none of Megatron's "
                     "modules: core_attn, mla_up_proj, moe, moe_act, "
                     "layernorm, mlp, shared_experts"),
            std::string::npos)
      << why;
}

/// The device is fed while the host is ahead, and stands still from a wait to
/// the next launch.
TEST(HostQueue, WaitsOfTheHost) {
  Target target = *shipped("h100-sxm-80gb");
  target.dispatchSeconds = 1;
  target.host.latencySeconds = 0;
  SegmentGraph graph;
  graph.view = {false, false, true};
  graph.host = {{2}, {1}, {}};
  auto secondsOf = [&](std::initializer_list<double> device, int &ops) {
    HostQueue queue;
    int views = 0, i = 0;
    ops = 0;
    for (double seconds : device)
      queue.add(graph, i++, seconds, &target, ops, views);
    return queue.seconds(&target);
  };
  int ops = 0;
  EXPECT_EQ(secondsOf({5, 1}, ops), 0); // nobody waits
  EXPECT_EQ(ops, 3);
  graph.host[0].waits = true;
  // Two launches, the first kernel, one launch more, the second kernel; of the
  // next call the launches run beside that.
  EXPECT_EQ(secondsOf({5, 4}, ops), 5 + 1 + 4);
  EXPECT_EQ(secondsOf({5, 1}, ops), 2 + 5 + 1);
  graph.host[1].replayed = true;
  EXPECT_EQ(secondsOf({5, 4}, ops), 5 + 4);
  EXPECT_EQ(ops, 2);
}

/// Of recipes that Megatron-Bridge published, by release, model, GPU,
/// precision, micro-batch and stages.
TEST(Recipes, ByRelease) {
  RecipeQuery query = {
      "megatron-bridge", "26.04.01", "deepseekv3", "gb300", "mxfp8", 2, 2};
  const auto recipe = findRecipe(query);
  ASSERT_TRUE(recipe);
  EXPECT_TRUE(recipe->recompute.has(plan::RecomputeModule::MlaUpProjection));
  EXPECT_EQ(recipe->tokenPredictors, 1);
  EXPECT_TRUE(recipe->narrowStates);
  query.microBatch = 4;
  EXPECT_FALSE(findRecipe(query));
  EXPECT_EQ(
      findRecipe({"nemo", "", "nemotron4340b", "h100", "fp8", 1, 8})->chunks,
      12);
}

/// A layer that predicts one token further has the sizes of the last one, two
/// norms and a projection before it, and a norm before the shared head.
TEST(TokenPredictors, ParametersAndTime) {
  RunRow row = bridgeRow("DeepSeekV3");
  row.layers = 2;
  row.gpu = "GB300";
  row.gpus = 32;
  row.framework = "Megatron-Bridge/26.04.01";
  row.sharding = "EP=32";
  row.precision = "mxfp8";
  row.microBatch = 2;
  row.globalBatch = 128;
  row.pipelineParallel = 2; // the recipe's stages
  auto bytes = [](const DecidedStep &step) {
    int64_t numel = 0;
    for (const StepParameter &parameter : step.model->parameters)
      numel += parameter.numel();
    return numel;
  };
  row.sharding = "EP=16";
  const DecidedStep with = stepOf(row);
  row.microBatch = 1; // no recipe
  const DecidedStep without = stepOf(row);
  const int64_t h = 7168;
  int64_t layer = 0;
  for (const StepParameter &parameter : without.model->parameters)
    if (parameter.fqn.starts_with("model.layers.1."))
      layer += parameter.numel();
  EXPECT_EQ(bytes(with) - bytes(without), layer + 2 * h * h + 3 * h);
  EXPECT_EQ(with.model->calls.size(), without.model->calls.size() + 2);
}

/// What stays of the layer at `path` for its backward.
double bytesOfLayer(const DecidedStep &step, const std::string &path) {
  for (size_t c = 0; c < step.model->calls.size(); ++c)
    if (step.model->calls[c].path == path) {
      const SegmentVariant &v = step.model->kinds[step.model->calls[c].kind]
                                    .variants[step.candidate.variants[c]];
      return static_cast<double>(v.savedBytes + v.savedInputBytes);
    }
  return 0;
}

/// Of a Mamba-2 layer the input and its norm, the projection, the scan's output
/// before and after the gate, and what the norm makes of that; as much for each
/// of several sequences, whose copies take the place of what they copy.
TEST(MegatronStates, SavedBytesOfALayer) {
  RunRow row = bridgeRow("Nemotron_3_Nano");
  row.sharding = "EP=8";
  const double h = 2688, d = 64 * 64, projected = 2 * d + 2 * 8 * 128 + 64;
  const double states = 4 * h + 4 + 2 * projected + 6 * d + 4 * 8;
  for (int64_t micro : {1, 2}) {
    row.microBatch = micro;
    EXPECT_NEAR(bytesOfLayer(stepOf(row), "model.layers.0") /
                    (static_cast<double>(4096 * micro) * states),
                1, 0.001)
        << micro;
  }
}

/// Experts between two projections: rows of 1024 elements for each of 22, one
/// matrix before the activation, and a shared expert beside.
TEST(MegatronExperts, SavedBytesBetweenProjections) {
  RunRow row = bridgeRow("Nemotron_3_Super");
  row.sharding = "EP=8";
  const double h = 4096, width = 1024, f = 2688, shared = 5376, k = 22, e = 512;
  const double layer = 4 * h + 4 + 2 * width + 4 * shared +
                       k * (2 * width + 4 * f + 4) + 4 * (2 * e + 1) + 4 * e +
                       e;
  EXPECT_NEAR(bytesOfLayer(stepOf(row), "model.layers.1") / (4096 * layer), 1,
              0.005);
}

/// Inputs of the projections and of the MLP, and what the MLP multiplies, have
/// 8 bits; attention's output has both.
TEST(MegatronLayers, EightBits) {
  RunRow row = bridgeRow("llama3-8b");
  row.layers = 2;
  const double wide = layerBytes(stepOf(row));
  row.precision = "fp8";
  const double narrow = layerBytes(stepOf(row));
  const double h = 4096, f = 14336;
  EXPECT_NEAR((wide - narrow) / (4096 * (2 * h + f - h)), 1, 0.001);
}

/// In 4 bits they have 0.5 bytes, and a scale of a byte for 16 of them.
TEST(MegatronLayers, FourBits) {
  RunRow row = bridgeRow("llama3-8b");
  row.layers = 2;
  row.gpu = "GB200";
  const double wide = layerBytes(stepOf(row));
  row.precision = "nvfp4";
  const double narrow = layerBytes(stepOf(row));
  const double h = 4096, f = 14336, each = 0.5 + 1.0 / 16;
  EXPECT_NEAR((wide - narrow) / 4096, (2 * h + f) * (2 - each) - h * each, 50);
}

/// Weights in fp8 take a byte on Blackwell, two with mxfp8's copies and where
/// matmuls need the transpose.
TEST(MegatronLayers, WeightsInEightBits) {
  RunRow row = bridgeRow("llama3-8b");
  auto bytesOf = [&](const char *gpu, const char *precision) {
    row.gpu = gpu;
    row.precision = precision;
    return stepOf(row).candidate.megatron.narrowWeightBytes;
  };
  EXPECT_EQ(bytesOf("H100", "bf16"), 0);
  EXPECT_EQ(bytesOf("H100", "fp8"), 2);
  EXPECT_EQ(bytesOf("GB200", "fp8"), 1);
  EXPECT_EQ(bytesOf("GB200", "mxfp8"), 2 + 2.0 / 32);
  EXPECT_EQ(bytesOf("GB200", "nvfp4"), 1 + 2.0 / 16);
}

/// The recipes' exchanges of tp run beside matmuls; Megatron-LM's do not.
TEST(MegatronLayers, TensorExchangesRunBesideMatmuls) {
  RunRow row = bridgeRow("llama3-8b");
  row.layers = 2;
  row.tensorParallel = 4;
  auto forward = [&](bool overlaps) {
    DiagnosticEngine engine;
    mlir::DialectRegistry registry;
    registerDialects(registry);
    mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
    context.loadAllAvailableDialects();
    validate::Run run = interpret(row);
    EXPECT_TRUE(run.megatron.overlapsTensor);
    run.megatron.overlapsTensor = overlaps;
    auto step =
        decide(context, *jobOf(run, engine), *shipped(run.target), engine);
    for (const StepCall &call : step->model->calls)
      if (call.layer)
        return step->model->kinds[call.kind].variants[0].forwardSeconds;
    return 0.0;
  };
  const double beside = forward(true), after = forward(false);
  EXPECT_LT(beside, 0.95 * after);
  EXPECT_GT(beside, 0.5 * after);
}

} // namespace
