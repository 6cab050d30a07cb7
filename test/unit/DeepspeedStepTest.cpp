//===- DeepspeedStepTest.cpp - DeepSpeed's steps --------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "test/unit/StepModels.h"

#include "gtest/gtest.h"

using namespace accel;
using namespace accel::stepmodels;

namespace {

/// DeepSpeed over 4 ranks.
Settings overFour(plan::DType dtype) {
  Settings settings;
  settings.executor = FrameworkKind::Deepspeed;
  settings.mesh.resize("dp_shard", 4);
  settings.param = dtype;
  return settings;
}

/// What DeepSpeed's documentation prints for t5-3b (2851 million parameters, 32
/// million in the largest layer) on 8 GPUs: memory.rst, the table of
/// estimate_zero2_ and estimate_zero3_model_states_mem_needs_all_cold, in
/// GiB with two decimals. Its formulas leave out a rank's partition of 16-bit
/// gradients, 2 bytes a parameter. Stage 2's count the buffers that gradients
/// are copied to beside the partition's gradients in fp32, before which they
/// are freed; stage 3's leave out that gradients are flattened for the update.
TEST(Executors, DeepspeedsOwnEstimates) {
  StepModel model = uniformModel(89, {32, 1000000}, 0);
  model.parameters.push_back(
      {"rest.weight", {24, 125000}, plan::DType::F32, true});
  model.units.front().parameters.push_back(89);
  constexpr double gib = 1 << 30, parameters = 2851e6, ranks = 8;
  const double partition = 2 * parameters / ranks / gib;
  Settings settings;
  settings.executor = FrameworkKind::Deepspeed;
  settings.mesh.resize("dp_shard", 8);
  settings.ranksPerNode = 8;
  settings.param = plan::DType::BF16;
  settings.optimizer = OptimizerKernel::Fused;
  // One bucket is one of the largest layer; nothing is gathered ahead or kept
  // for the backward.
  settings.zero.prefetchBucket = settings.zero.persistenceThreshold = 0;
  settings.zero.reuseDistance = 0;
  const Target machine = h100();
  StepEvaluator evaluator(model, machine);
  auto predict = [&](int stage, int64_t bucket, bool optimizer, bool offload) {
    settings.zeroStage = stage;
    settings.zero.reduceBucket = bucket;
    settings.offloadOptimizer = optimizer;
    settings.offloadParameters = offload;
    const Candidate candidate = configuredCandidate(model, settings);
    EXPECT_EQ(verifyCandidate(model, candidate), "");
    return evaluator.evaluate(candidate);
  };
  constexpr double printed = 0.005;
  // Stage 2: 4 P + 16 P / N; two of the four are the gradients, here a bucket
  // that all of them fit in. With offload, the parameters, and a buffer for the
  // largest gradient, which the table leaves out.
  // A rank keeps the gradients of twelve layers, of which it has 11.1.
  StepPrediction p = predict(2, 2851000000, false, false);
  const double kept = 2 * 12 * 32e6 / gib;
  EXPECT_NEAR(p.peakBytes / gib - kept + 2 * partition, 15.93, printed);
  p = predict(2, 0, true, false);
  EXPECT_NEAR(p.persistentBytes / gib - 2 * 32e6 / gib, 5.31, printed);
  // Times 1.5, for the node: 16 P. The table has max(4 N, 16) P, for models
  // that each rank has in fp32 at first.
  EXPECT_NEAR(1.5 * p.hostBytes * ranks / gib * 2, 127.45, 0.01);
  // Stage 3: 18 P / N and the largest layer's parameters and gradients, which
  // are not there at the update.
  p = predict(3, 0, false, false);
  EXPECT_EQ(p.peakWhere, "optimizer update");
  EXPECT_NEAR(p.peakBytes / gib - 2 * partition + 4 * 32e6 / gib, 6.09,
              printed);
  // Here the largest unit has the last three million too.
  constexpr double rest = 2 * 3e6 / gib;
  p = predict(3, 0, true, false);
  EXPECT_NEAR(p.peakBytes / gib - rest, 0.78, printed);
  EXPECT_NEAR(1.5 * p.hostBytes * ranks / gib, 63.72, printed);
  p = predict(3, 0, true, true);
  EXPECT_NEAR(p.peakBytes / gib - rest, 0.12, printed);
  EXPECT_NEAR(1.5 * p.hostBytes * ranks / gib, 71.69, printed);
}

/// The buckets of stages 1 and 2 are doubled where communication overlaps, and
/// live in the backward alone; the one of stage 3 is neither. They are as large
/// as the option says.
TEST(Executors, DeepspeedBuckets) {
  const StepModel model = uniformModel(3, {1024, 1024}, 0);
  Settings settings = overFour(plan::DType::BF16);
  const Target machine = h100();
  auto held = [&](int stage, int64_t bucket, bool overlap, bool peak) {
    settings.zeroStage = stage;
    settings.zero.reduceBucket = bucket;
    settings.zero.overlap = overlap;
    if (!peak)
      return persistentOf(model, machine, settings);
    StepEvaluator evaluator(model, machine);
    return evaluator.evaluate(configuredCandidate(model, settings)).peakBytes;
  };
  constexpr int64_t elements = 1 << 28, some = 1 << 27;
  for (bool overlap : {false, true}) {
    for (int stage : {1, 2}) {
      const int64_t bytes = (overlap ? 4 : 2) * (elements - some);
      EXPECT_EQ(held(stage, elements, overlap, false),
                held(stage, 0, overlap, false));
      EXPECT_EQ(held(stage, elements, overlap, true) -
                    held(stage, some, overlap, true),
                bytes);
    }
    EXPECT_EQ(held(3, elements, overlap, false) - held(3, 0, overlap, false),
              2 * elements);
  }
  EXPECT_EQ(held(0, elements, true, false), held(0, 0, true, false));
}

/// Gradients that this rank keeps, 2 bytes each of its part, are flattened
/// beside their fp32 copies, and freed before the update. Those of a later
/// micro-batch have room of their own until they are added.
TEST(Executors, DeepspeedUpdatesFlatGradients) {
  const StepModel model = uniformModel(8, {1024, 1024}, 0);
  Settings settings = overFour(plan::DType::BF16);
  settings.optimizer = OptimizerKernel::Fused;
  settings.zeroStage = 2;
  settings.zero.reduceBucket = 0;
  const Target machine = h100();
  StepEvaluator evaluator(model, machine);
  constexpr int64_t parameters = 8 << 20, own = parameters / 4;
  StepPrediction p = evaluator.evaluate(configuredCandidate(model, settings));
  EXPECT_EQ(p.peakWhere, "optimizer update");
  EXPECT_EQ(p.persistentBytes, 2 * parameters + 12 * own);
  EXPECT_EQ(p.peakBytes, 2 * parameters + (12 + 2 + 2 + 4) * own);
  // torch's lists of square roots come when the others are gone.
  settings.optimizer = OptimizerKernel::Foreach;
  EXPECT_EQ(evaluator.evaluate(configuredCandidate(model, settings)).peakBytes,
            p.peakBytes);
}

/// What is no number is looked for without a tensor; the norm is that of a copy
/// in fp64. A rank keeps the whole gradient of a parameter of which it has a
/// part in stages 1 and 2.
TEST(Executors, DeepspeedLooksForOverflow) {
  const Target machine = h100();
  auto peak = [&](int stage, int64_t parameters, plan::DType dtype) {
    const StepModel model = uniformModel(parameters, {1024, 1024}, 0);
    Settings settings = overFour(dtype);
    settings.optimizer = OptimizerKernel::Fused;
    settings.zeroStage = stage;
    settings.zero.reduceBucket = settings.zero.prefetchBucket = 0;
    settings.zero.persistenceThreshold = settings.zero.reuseDistance = 0;
    settings.zero.subGroup = 1; // each parameter is updated alone
    StepEvaluator evaluator(model, machine);
    return evaluator.evaluate(configuredCandidate(model, settings)).peakBytes;
  };
  // One parameter, of which each rank has a quarter.
  constexpr int64_t parameter = 1 << 20, part = parameter / 4;
  for (plan::DType dtype : {plan::DType::BF16, plan::DType::F16})
    for (int stage : {1, 2})
      EXPECT_NEAR(peak(stage, 1, dtype), (2 + 2) * parameter + (12 + 8) * part,
                  1 << 12);
  // Sixteen of them: the peak is in the backward of one.
  constexpr int64_t own = 16 * part;
  for (plan::DType dtype : {plan::DType::BF16, plan::DType::F16})
    EXPECT_NEAR(peak(3, 16, dtype), (2 + 12 + 2) * own + 4 * parameter,
                1 << 14);
}

/// Stage 3 updates a sub-group at a time, which the parameter closes that fills
/// it (stage3.py, _create_fp16_sub_groups): what the update holds for a moment
/// grows by a parameter's part with each one that a sub-group has.
TEST(Executors, DeepspeedUpdatesSubGroups) {
  const StepModel model = uniformModel(16, {1024, 1024}, 0);
  constexpr int64_t part = (1 << 20) / 4;
  const Target machine = h100();
  StepEvaluator evaluator(model, machine);
  auto peak = [&](int64_t subGroup) {
    Settings settings = overFour(plan::DType::BF16);
    settings.optimizer = OptimizerKernel::Foreach;
    settings.zeroStage = 3;
    settings.zero.reduceBucket = settings.zero.prefetchBucket = 0;
    settings.zero.persistenceThreshold = settings.zero.reuseDistance = 0;
    settings.zero.subGroup = subGroup;
    return evaluator.evaluate(configuredCandidate(model, settings)).peakBytes;
  };
  const int64_t step = peak(11 * part) - peak(10 * part);
  EXPECT_GE(step, 4 * part) << "fp32, of one list at least";
  for (int64_t parameters : {10, 13, 15}) {
    EXPECT_EQ(peak((parameters - 1) * part + 1), peak(parameters * part));
    EXPECT_EQ(peak(parameters * part + 1) - peak(parameters * part), step);
  }
  // A longer one than all is one group, as without the key.
  EXPECT_EQ(peak(16 * part), peak(1'000'000'000));
  EXPECT_EQ(peak(16 * part) - peak(15 * part), step);
}

/// Stage 3 keeps what the backward uses again soon, and gathers as much ahead
/// as may live.
TEST(Executors, DeepspeedKeepsWhatIsUsedSoon) {
  const StepModel model = uniformModel(16, {1024, 1024}, 0);
  Settings settings = overFour(plan::DType::BF16);
  settings.optimizer = OptimizerKernel::Fused;
  settings.zeroStage = 3;
  settings.zero.reduceBucket = settings.zero.persistenceThreshold = 0;
  settings.zero.prefetchBucket = settings.zero.reuseDistance = 0;
  settings.zero.subGroup = 1; // the update needs less
  const Target machine = h100();
  StepEvaluator evaluator(model, machine);
  auto peak = [&] {
    return evaluator.evaluate(configuredCandidate(model, settings)).peakBytes;
  };
  constexpr int64_t parameter = 1 << 20;
  const int64_t none = peak();
  // Between the uses of the last layer there is nothing, of the others two
  // layers more each.
  for (int64_t layers : {2, 5}) {
    settings.zero.reuseDistance = 2 * (layers - 1) * parameter + 1;
    EXPECT_NEAR(peak() - none, 2 * (layers - 1) * parameter, 1 << 14);
  }
  settings.zero.reuseDistance = 0;
  settings.zero.prefetchBucket = 2 * parameter;
  settings.zero.liveParameters = 4 * parameter;
  EXPECT_NEAR(peak() - none, 2 * 3 * parameter, 1 << 14);
}

/// Partitions are copied in fp32 too; stage 0 updates parameters as they are.
TEST(Executors, DeepspeedCopiesPartitionsOfFloats) {
  const StepModel model = uniformModel(4, {1024, 1024}, 0);
  Settings settings = overFour(plan::DType::F32);
  settings.optimizer = OptimizerKernel::Fused;
  settings.zero.reduceBucket = settings.zero.persistenceThreshold = 0;
  const Target machine = h100();
  constexpr int64_t parameters = 4 << 20, own = parameters / 4;
  auto held = [&](int stage) {
    settings.zeroStage = stage;
    return persistentOf(model, machine, settings);
  };
  EXPECT_EQ(held(0), 4 * parameters + 8 * parameters);
  EXPECT_EQ(held(1), 4 * parameters + 12 * own);
  EXPECT_EQ(held(2), 4 * parameters + 12 * own);
  EXPECT_EQ(held(3), (4 + 12 + 4) * own);
}

/// The update of stages 1 and 2 gathers what is trained alone: partitions are
/// of trainable_parameters (zero/stage_1_and_2.py).
TEST(Executors, DeepspeedGathersWhatIsTrained) {
  const Target machine = h100();
  auto gather = [&](int stage, const StepModel &model) {
    Settings settings = overFour(plan::DType::BF16);
    settings.zeroStage = stage;
    const StepPrediction p =
        StepEvaluator(model, machine)
            .evaluate(configuredCandidate(model, settings), /*detail=*/true);
    double seconds = 0;
    for (const Exposed &e : p.exposed)
      seconds += e.cause.starts_with("gather") ? e.seconds : 0;
    return seconds;
  };
  StepModel half = uniformModel(8, {1024, 1024}, 0);
  for (int p = 4; p < 8; ++p)
    half.parameters[p].trainable = false;
  for (int stage : {1, 2}) {
    const double all = gather(stage, uniformModel(4, {1024, 1024}, 0));
    EXPECT_GT(all, 0);
    EXPECT_NEAR(gather(stage, half), all, 1e-9);
  }
}

/// Each rank's part of a second copy is there from the first forward to the
/// update; with 8-bit gathers the values on the wire are beside what they
/// become.
TEST(Executors, DeepspeedSecondCopy) {
  const StepModel model = uniformModel(4, {1024, 1024}, 0);
  Settings settings;
  settings.executor = FrameworkKind::Deepspeed;
  settings.zeroStage = 3;
  settings.param = plan::DType::BF16;
  settings.zero.reduceBucket = settings.zero.persistenceThreshold = 0;
  settings.mesh.resize("dp_shard", 8);
  const Target machine = h100();
  StepEvaluator evaluator(model, machine);
  auto predict = [&] {
    const Candidate candidate = configuredCandidate(model, settings);
    EXPECT_EQ(verifyCandidate(model, candidate), "");
    return evaluator.evaluate(candidate);
  };
  const StepPrediction plain = predict();
  settings.mesh.resize("dp_shard", 2);
  settings.mesh.resize(plan::secondaryAxis, 4);
  EXPECT_EQ(predict().peakBytes, plain.peakBytes) << "the axis alone";
  settings.zero.secondaryRanks = 4;
  const StepPrediction second = predict();
  EXPECT_EQ(second.persistentBytes, plain.persistentBytes);
  EXPECT_EQ(second.peakBytes - plain.peakBytes, (4 << 20) / 4 * 2);
  settings.zeroStage = 2;
  const StepPrediction two = predict();
  settings.zero.secondaryRanks = 0;
  EXPECT_EQ(predict().peakBytes, two.peakBytes) << "stage 3 alone has one";
}

} // namespace
