//===- ExecutorsTest.cpp - Executor models --------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/Buckets.h"
#include "passes/FrameworkSteps/Engine.h"
#include "test/unit/StepModels.h"

#include "gtest/gtest.h"

#include <numeric>

using namespace accel;
using namespace accel::stepmodels;

namespace {

void expectSame(const StepPrediction &a, const StepPrediction &b) {
  EXPECT_EQ(a.peakBytes, b.peakBytes);
  EXPECT_EQ(a.atPeak, b.atPeak);
  EXPECT_EQ(a.peakWhere, b.peakWhere);
  EXPECT_EQ(a.persistentBytes, b.persistentBytes);
  EXPECT_EQ(a.endBytes, b.endBytes);
  EXPECT_EQ(a.reservedBytes, b.reservedBytes);
  EXPECT_EQ(a.hostBytes, b.hostBytes);
  EXPECT_EQ(a.stepSeconds, b.stepSeconds);
  EXPECT_EQ(a.computeSeconds, b.computeSeconds);
  EXPECT_EQ(a.exposedSeconds, b.exposedSeconds);
  EXPECT_EQ(a.recomputeSeconds, b.recomputeSeconds);
  EXPECT_EQ(a.optimizerSeconds, b.optimizerSeconds);
}

/// Layers that are solved once give the very figures of running each.
TEST(Executors, FoldedIsExpanded) {
  std::mt19937 random(1);
  for (int i = 0; i < 600; ++i) {
    const StepModel model = randomModel(random);
    const Target machine = h100();
    StepEvaluator evaluator(model, machine);
    const Candidate candidate = randomCandidate(model, random);
    ASSERT_EQ(verifyCandidate(model, candidate), "");
    EvaluateOptions expanded;
    expanded.expanded = true;
    const StepPrediction want = evaluator.evaluate(candidate, expanded);
    const StepPrediction got = evaluator.evaluate(candidate);
    expectSame(got, want);
    if (HasFailure()) {
      ADD_FAILURE() << "candidate " << i << ": "
                    << toString(candidate.executor);
      return;
    }
  }
}

/// Whatever a step allocates, it frees, and the parts sum to the peak.
TEST(Executors, BytesBalance) {
  std::mt19937 random(2);
  for (int i = 0; i < 600; ++i) {
    const StepModel model = randomModel(random);
    const Target machine = h100();
    const Candidate candidate = randomCandidate(model, random);
    const StepPrediction p = StepEvaluator(model, machine).evaluate(candidate);
    EXPECT_EQ(p.endBytes, p.persistentBytes)
        << toString(candidate.executor) << " candidate " << i;
    EXPECT_EQ(std::accumulate(p.atPeak.begin(), p.atPeak.end(), int64_t(0)),
              p.peakBytes);
    for (int64_t bytes : p.atPeak)
      EXPECT_GE(bytes, 0) << toString(candidate.executor);
    EXPECT_GE(p.reservedBytes, p.peakBytes);
    EXPECT_LE(p.computeSeconds, p.stepSeconds);
    if (HasFailure())
      return;
  }
}

/// The units of fsdp2.md, 1.6: bf16 parameters of fp32 shards, reduced in
/// fp32. In the backward of a middle layer there are its parameters (U), the
/// gathered output of the next one (A), the input of the last reduce-scatter
/// (X), and its own gradients (G): 2 + 2 + 4 + 2 bytes a parameter.
TEST(Executors, Fsdp2TransientsOfALayer) {
  constexpr int64_t numel = 1 << 20, layers = 6;
  StepModel model = uniformModel(layers, {1024, 1024}, /*saved=*/0);
  Candidate candidate = uniformCandidate(model, FrameworkKind::Fsdp2);
  candidate.mesh.resize("dp_shard", 8);
  candidate.dtypes.compute = plan::DType::BF16;
  candidate.optimizer = OptimizerKernel::Fused;
  const Target machine = h100();
  const StepPrediction p = StepEvaluator(model, machine).evaluate(candidate);
  const int64_t shards = layers * numel / 8 * 4;
  EXPECT_EQ(p.persistentBytes, 3 * shards);
  // In the backward of layer 1: U, A of layer 0, X of layer 2 and G; the RS
  // outputs of layers 2 to 5; the batch, the saved input, the gradients of
  // output and input.
  const int64_t layer = (2 + 2 + 4 + 2) * numel;
  const int64_t outputs = 4 * (numel / 8 * 4);
  EXPECT_EQ(p.peakBytes, 3 * shards + layer + outputs + 4 * 512);
  EXPECT_EQ(p.peakWhere, "backward of layers.1");
  EXPECT_EQ(p.atPeak[static_cast<int>(Holding::Gathered)], 4 * numel);
  EXPECT_EQ(p.atPeak[static_cast<int>(Holding::Buffers)],
            4 * numel + batchBytes(model));
}

/// torch.chunk: 5 rows on 4 ranks are chunks of 2, 2, 1 and 0 rows, each padded
/// to 2.
TEST(Executors, UnevenShards) {
  StepModel model = uniformModel(2, {5, 128}, 0);
  Candidate candidate = uniformCandidate(model, FrameworkKind::Fsdp2);
  candidate.mesh.resize("dp_shard", 4);
  const Target machine = h100();
  StepEvaluator evaluator(model, machine);
  EvaluateOptions last;
  last.lastRank = true;
  const StepPrediction first = evaluator.evaluate(candidate);
  const StepPrediction rest = evaluator.evaluate(candidate, last);
  const int64_t chunk = 2 * 128 * 4;
  EXPECT_EQ(first.persistentBytes, 2 * (chunk + 2 * chunk));
  EXPECT_EQ(rest.persistentBytes, 2 * chunk);
}

/// 16 bytes a parameter with fp32 shards and gradients, 8 in pure bf16.
TEST(Executors, StepDtypes) {
  const StepModel model = uniformModel(3, {1024, 1024}, 0);
  const int64_t numel = 3 << 20;
  const Target machine = h100();
  Settings settings;
  settings.loaded = plan::DType::BF16;
  EXPECT_EQ(persistentOf(model, machine, settings), 6 * numel);
  settings.upcast = true;
  settings.param = settings.reduce = plan::DType::BF16;
  EXPECT_EQ(persistentOf(model, machine, settings), 12 * numel);
  const Candidate candidate = configuredCandidate(model, settings);
  EXPECT_EQ(candidate.dtypes.gradient, plan::DType::F32);
  EXPECT_EQ(candidate.dtypes.compute, plan::DType::BF16);
}

/// A policy without a reduce dtype: the wire follows the original dtype from
/// torch 2.15, the parameter dtype before, and in FSDP1 always.
TEST(Executors, ReduceDtypeByVersion) {
  const StepModel model = uniformModel(1, {8, 8}, 0);
  Settings settings;
  settings.param = plan::DType::BF16;
  EXPECT_EQ(configuredCandidate(model, settings).dtypes.reduce,
            plan::DType::F32);
  settings.torchVersion = "2.14.1";
  EXPECT_EQ(configuredCandidate(model, settings).dtypes.reduce,
            plan::DType::BF16);
  settings.torchVersion = "2.15.0";
  settings.executor = FrameworkKind::Fsdp1;
  EXPECT_EQ(configuredCandidate(model, settings).dtypes.reduce,
            plan::DType::BF16);
  EXPECT_TRUE(atLeast("2.15", "2.9"));
  EXPECT_FALSE(atLeast("2.9.1", "2.10"));
}

/// DDP holds gradients twice unless they are views of the buckets.
TEST(Executors, DdpGradientsAndBuckets) {
  const StepModel model = uniformModel(8, {1024, 1024}, 0, 4);
  const int64_t parameters = 8 * (4 << 20);
  Candidate candidate = uniformCandidate(model, FrameworkKind::Ddp);
  candidate.mesh.resize("dp_replicate", 8);
  candidate.optimizer = OptimizerKernel::Fused;
  const Target machine = h100();
  StepEvaluator evaluator(model, machine);
  const StepPrediction copies = evaluator.evaluate(candidate);
  EXPECT_EQ(copies.persistentBytes, 4 * parameters);
  candidate.gradientAsBucketView = true;
  const StepPrediction views = evaluator.evaluate(candidate);
  EXPECT_EQ(views.persistentBytes, 4 * parameters);
  EXPECT_EQ(copies.peakBytes - views.peakBytes,
            // One gradient on its way into its bucket, when the inputs of
            // seven layers are saved; then those of one.
            parameters - (4 << 20) - 6 * 512);
  candidate.gradientAsBucketView = false;
  candidate.commHook = "bf16";
  // All 16-bit copies are there when the last bucket leaves, after the last
  // layer's temporaries.
  EXPECT_EQ(evaluator.evaluate(candidate).peakBytes - copies.peakBytes,
            parameters / 2 - 2 * 512);
}

TEST(Executors, BucketsCloseAtTheirLimit) {
  const std::vector<Bucket> buckets =
      assignBuckets({600, 600, 900, 50, 2000, 10}, 1000, 2000);
  ASSERT_EQ(buckets.size(), 3u);
  EXPECT_EQ(buckets[0].tensors, (std::vector<int>{0, 1}));
  EXPECT_EQ(buckets[1].tensors, (std::vector<int>{2, 3, 4}));
  EXPECT_EQ(buckets[2].tensors, (std::vector<int>{5}));
  EXPECT_TRUE(assignBuckets({}, 1, 1).empty());
}

/// Without synchronization every rank holds all gradients in the dtype of the
/// reduction; reducing each micro-batch holds shards.
TEST(Executors, AccumulationWithoutSynchronization) {
  const StepModel model = uniformModel(12, {1024, 1024}, 0);
  Candidate candidate = uniformCandidate(model, FrameworkKind::Fsdp2);
  candidate.mesh.resize("dp_shard", 8);
  candidate.accumulation = 4;
  const Target machine = h100();
  StepEvaluator evaluator(model, machine);
  const StepPrediction each = evaluator.evaluate(candidate);
  candidate.reduceEachMicroBatch = false;
  const StepPrediction once = evaluator.evaluate(candidate);
  EXPECT_GT(once.peakBytes - each.peakBytes, (12 - 2) * (4 << 20) / 8 * 7);
  EXPECT_LT(once.exposedSeconds, each.exposedSeconds);
}

/// A gather that takes longer than the layer that hides it is exposed by the
/// difference, once for each layer.
TEST(Executors, ExposedGathersAddUp) {
  StepModel model = uniformModel(40, {8192, 8192}, 0);
  Target machine = h100();
  machine.overlap = 1;
  Candidate candidate = uniformCandidate(model, FrameworkKind::Fsdp2);
  candidate.mesh.resize("dp_shard", 64);
  StepEvaluator evaluator(model, machine);
  const StepPrediction bound = evaluator.evaluate(candidate);
  machine.betweenNodes.bytesPerSecond *= 1000;
  machine.insideNode.bytesPerSecond *= 1000;
  StepEvaluator faster(model, machine);
  const StepPrediction free = faster.evaluate(candidate);
  EXPECT_EQ(bound.peakBytes, free.peakBytes);
  EXPECT_GT(bound.exposedSeconds, free.exposedSeconds);
  EXPECT_EQ(bound.computeSeconds, free.computeSeconds);
  const StepPrediction detail = evaluator.evaluate(candidate, true);
  ASSERT_FALSE(detail.exposed.empty());
  double sum = 0;
  for (const Exposed &e : detail.exposed)
    sum += e.seconds;
  EXPECT_NEAR(sum, detail.exposedSeconds, 1e-9 + 1e-6 * sum);
}

/// What functions wait for that ranks exchange is exposed, and no computation;
/// a step is as long as before.
TEST(Executors, ExchangesOfFunctionsAreExposed) {
  for (FrameworkKind executor :
       {FrameworkKind::Fsdp2, FrameworkKind::Fsdp1, FrameworkKind::Deepspeed}) {
    StepModel model = uniformModel(6, {1024, 1024}, 1 << 20);
    Candidate candidate = uniformCandidate(model, executor);
    candidate.mesh.resize("tp", 2);
    candidate.accumulation = 5;
    const Target machine = h100();
    const StepPrediction before =
        StepEvaluator(model, machine).evaluate(candidate, true);
    double exchanged = 0;
    for (const StepCall &call : model.calls) {
      SegmentVariant &v = model.kinds[call.kind].variants[0];
      v.forwardExchangeSeconds = v.forwardSeconds / 4;
      v.backwardExchangeSeconds = v.backwardSeconds / 2;
      exchanged += 5 * (v.forwardExchangeSeconds + v.backwardExchangeSeconds);
    }
    const StepPrediction after =
        StepEvaluator(model, machine).evaluate(candidate, true);
    EXPECT_EQ(after.stepSeconds, before.stepSeconds);
    EXPECT_EQ(after.peakBytes, before.peakBytes);
    double told = 0;
    for (const Exposed &e : after.exposed)
      if (e.cause == "exchanges over tp")
        told += e.seconds;
    EXPECT_NEAR(before.computeSeconds - after.computeSeconds, told, 1e-10);
    EXPECT_GT(told, 0);
    EXPECT_LE(told, exchanged + 1e-10);
    // The host launches while ranks exchange.
    Target idle = machine;
    idle.dispatchSeconds = 0;
    const StepPrediction device =
        StepEvaluator(model, idle).evaluate(candidate, true);
    ASSERT_FALSE(device.exposed.empty());
    told = 0;
    for (const Exposed &e : device.exposed)
      if (e.cause == "exchanges over tp")
        told += e.seconds;
    EXPECT_NEAR(told, exchanged, 1e-10);
  }
}

/// Exposed seconds by place of many micro-batches are those of running each.
TEST(Executors, ExposedSecondsOfManyMicroBatches) {
  StepModel model = uniformModel(5, {8192, 8192}, 0);
  Candidate candidate = uniformCandidate(model, FrameworkKind::Fsdp2);
  candidate.mesh.resize("dp_shard", 64);
  candidate.accumulation = 50;
  const Target machine = h100();
  StepEvaluator evaluator(model, machine);
  EvaluateOptions expanded;
  expanded.expanded = true;
  const StepPrediction each = evaluator.evaluate(candidate, expanded);
  const StepPrediction detail = evaluator.evaluate(candidate, true);
  EXPECT_EQ(detail.stepSeconds, each.stepSeconds);
  EXPECT_EQ(detail.exposedSeconds, each.exposedSeconds);
  EXPECT_EQ(detail.peakBytes, each.peakBytes);
  double sum = 0;
  for (const Exposed &e : detail.exposed)
    sum += e.seconds;
  EXPECT_NEAR(sum, detail.exposedSeconds, 1e-9 + 1e-6 * sum);
}

/// Logits that the training loop keeps come on top of the loss's peak, twice
/// as large where a wrapper made them fp32; parts of the loss share the peak.
TEST(Executors, LogitsAndLoss) {
  StepModel model = uniformModel(2, {64, 64}, 0);
  SegmentKind &head = model.kinds.emplace_back(model.kinds.front());
  head.loss = true;
  head.logitsBytes = 1 << 20;
  SegmentVariant &v = head.variants.front();
  v.savedBytes = 2 << 20;
  v.forwardPeakBytes = 5 << 20;
  v.lossPeakBytes = 4 << 20;
  model.calls.back().kind = 1;
  Candidate candidate = uniformCandidate(model, FrameworkKind::Single);
  candidate.dtypes.compute = plan::DType::BF16;
  const Target machine = h100();
  StepEvaluator evaluator(model, machine);
  const StepPrediction plain = evaluator.evaluate(candidate);
  EXPECT_EQ(plain.endBytes, plain.persistentBytes);
  candidate.holdsOutputs = true;
  const StepPrediction held = evaluator.evaluate(candidate);
  EXPECT_EQ(held.peakBytes - plain.peakBytes, 1 << 20);
  candidate.dtypes.outputFloat = true;
  EXPECT_EQ(evaluator.evaluate(candidate).peakBytes - plain.peakBytes, 2 << 20);
  EXPECT_EQ(evaluator.evaluate(candidate).endBytes, plain.persistentBytes);
  candidate.holdsOutputs = candidate.dtypes.outputFloat = false;
  candidate.lossChunks = 8;
  const StepPrediction chunked = evaluator.evaluate(candidate);
  EXPECT_LT(chunked.peakBytes, plain.peakBytes - (5 << 20));
  EXPECT_EQ(chunked.endBytes, plain.persistentBytes);
}

/// Parts of a loss read the table again and add to its gradient.
TEST(Executors, PartsOfTheLossCostTraffic) {
  StepModel model = uniformModel(2, {4096, 1024}, 0);
  model.sequenceLength = 2048;
  SegmentKind &head = model.kinds.emplace_back(model.kinds.front());
  head.loss = true;
  head.logitsBytes = 2048 * 4096 * 4;
  head.forwardFlops = 2.0 * 2048 * 4096 * 1024;
  model.calls.back().kind = 1;
  // ceil(4096 / 1024) parts would have 512 rows.
  EXPECT_EQ(fusedLossChunks(model), 4);
  model.sequenceLength = 2049; // 513 rows: the next power of two is 1024
  EXPECT_EQ(fusedLossChunks(model), 3);
  model.sequenceLength = 0; // images
  EXPECT_EQ(fusedLossChunks(model), 1);
  Candidate candidate = uniformCandidate(model, FrameworkKind::Fsdp2);
  Target machine = h100();
  auto seconds = [&](int64_t chunks) {
    candidate.lossChunks = chunks;
    return StepEvaluator(model, machine).evaluate(candidate).stepSeconds;
  };
  const double whole = seconds(1), four = seconds(4), many = seconds(256);
  EXPECT_LT(whole, four);
  EXPECT_LT(four, many);
  // Three further additions to the table's gradient, which are three times its
  // bytes each, and their launches.
  const double table = 4096.0 * 1024 * 2;
  EXPECT_GE(four - whole, 3 * 3 * table / machine.memoryBytesPerSecond * 0.99);
  candidate.executor = FrameworkKind::AccelRun;
  EXPECT_NE(verifyCandidate(model, candidate), "");
}

/// torch.compile leaves wrappers' hooks to Python: short layers wait for them,
/// compiled or not, and long ones never do.
TEST(Executors, CompiledUnitsHaveTheirHooks) {
  const StepModel model = uniformModel(8, {1024, 1024}, 0);
  Target free = h100();
  free.dispatchSeconds = 0;
  auto step = [&](FrameworkKind kind, const Target &machine, double slower) {
    StepModel scaled = model;
    for (SegmentVariant &v : scaled.kinds[0].variants) {
      v.compiledForwardSeconds *= slower;
      v.compiledBackwardSeconds *= slower;
    }
    Candidate candidate = uniformCandidate(scaled, kind);
    candidate.mesh.resize("dp_shard", 8);
    candidate.compiled = true;
    return StepEvaluator(scaled, machine).evaluate(candidate).stepSeconds;
  };
  for (FrameworkKind kind : {FrameworkKind::Fsdp1, FrameworkKind::Fsdp2}) {
    // Half of 100 operators or more of 20 us in each forward and backward.
    EXPECT_GT(step(kind, h100(), 0.1), 8 * 2 * 0.9e-3);
    EXPECT_LT(step(kind, free, 0.1), 8 * 0.9e-3);
    EXPECT_NEAR(step(kind, h100(), 10), step(kind, free, 10), 1e-9);
  }
}

/// What the host updates is waited for; the device's own time is the rest.
TEST(Executors, UpdateOnTheHostIsExposed) {
  const StepModel model = uniformModel(8, {1024, 1024}, 0);
  const Target machine = h100();
  StepEvaluator evaluator(model, machine);
  for (FrameworkKind kind :
       {FrameworkKind::Fsdp2, FrameworkKind::Fsdp1, FrameworkKind::Deepspeed}) {
    Candidate candidate = uniformCandidate(model, kind);
    candidate.mesh.resize("dp_shard", 8);
    candidate.zeroStage = 3;
    candidate.offloadParameters = candidate.offloadOptimizer = true;
    const StepPrediction host = evaluator.evaluate(candidate, true);
    EXPECT_EQ(host.optimizerSeconds, 0) << toString(kind);
    const bool told = std::any_of(
        host.exposed.begin(), host.exposed.end(), [](const Exposed &e) {
          return e.cause == "update on the host" && e.seconds > 0;
        });
    EXPECT_TRUE(told) << toString(kind);
    EXPECT_GT(host.hostBytes, 0);
    candidate.offloadParameters = candidate.offloadOptimizer = false;
    const StepPrediction device = evaluator.evaluate(candidate);
    EXPECT_GT(device.optimizerSeconds, 0) << toString(kind);
    // Forward and backward compute the same wherever the update is.
    EXPECT_NEAR(host.computeSeconds - host.optimizerSeconds,
                device.computeSeconds - device.optimizerSeconds,
                1e-6 * device.computeSeconds)
        << toString(kind);
  }
  Candidate candidate = uniformCandidate(model, FrameworkKind::Deepspeed);
  candidate.zeroStage = 0;
  candidate.offloadOptimizer = true;
  EXPECT_NE(verifyCandidate(model, candidate).find("stages 1 to 3"),
            std::string::npos);
}

/// Where the CPU is slower than the device, its operators count, and views half
/// of one: nothing is launched for them.
TEST(Executors, ViewsTakeTheCpuHalfOfAnOperator) {
  StepModel model = uniformModel(6, {64, 64}, 0);
  Candidate candidate = uniformCandidate(model, FrameworkKind::Ddp);
  Target machine = h100();
  machine.dispatchSeconds = 1e-2;
  auto seconds = [&](int views) {
    for (SegmentKind &kind : model.kinds)
      for (SegmentVariant &variant : kind.variants) {
        variant.forwardViews = views;
        variant.backwardViews = 2 * views;
      }
    return StepEvaluator(model, machine).evaluate(candidate).computeSeconds;
  };
  const double without = seconds(0);
  EXPECT_GE(without, 6 * 30 * 1e-2);
  EXPECT_NEAR(seconds(8) - without, 6 * (8 + 16) * 0.5 * 1e-2, 1e-9);
  // Views alone do not make a device wait that is the slower one.
  machine.dispatchSeconds = 1e-12;
  EXPECT_EQ(seconds(8), seconds(0));
}

TEST(Executors, OffloadMovesBytesToTheHost) {
  const StepModel model = uniformModel(6, {1024, 1024}, 0);
  Candidate candidate = uniformCandidate(model, FrameworkKind::Fsdp2);
  candidate.mesh.resize("dp_shard", 4);
  const Target machine = h100();
  StepEvaluator evaluator(model, machine);
  const StepPrediction device = evaluator.evaluate(candidate);
  candidate.offloadParameters = true;
  const StepPrediction host = evaluator.evaluate(candidate);
  EXPECT_EQ(host.persistentBytes, 0);
  EXPECT_GE(host.hostBytes, device.persistentBytes);
  EXPECT_GT(host.stepSeconds, device.stepSeconds);
}

//===----------------------------------------------------------------------===//
// The model of torch's removed test_fsdp_ilp.py: four blocks, a head and a root
// unit on 4 ranks; collectives of 10 microseconds and a bandwidth.
//===----------------------------------------------------------------------===//

/// Bytes of fp32 parameters and seconds of each part, from that test.
constexpr int64_t blockBytes = 453095424, headBytes = 100663296,
                  totalBytes = 1960000000;
constexpr double blockForward = 18.586358962812866e-3,
                 blockBackward = 42.31444884235838e-3,
                 headForward = 3.7249330481443956e-3,
                 headBackward = 8.000336731209435e-3;

/// Milliseconds of exposed communication; the head is a unit of its own or
/// part of the root.
double exposedOfIlpModel(double bytesPerSecond, bool headIsUnit) {
  StepModel model = uniformModel(5, {4, blockBytes / 16}, 0);
  model.parameters[4].shape = {4, headBytes / 16};
  const int64_t rest = totalBytes - 4 * blockBytes - headBytes;
  model.parameters.push_back(
      {"root.weight", {4, rest / 16}, plan::DType::F32, true});
  StepUnit root;
  root.parameters = {5};
  root.root = true;
  if (!headIsUnit) {
    root.parameters.push_back(4);
    model.units.pop_back();
  }
  model.units.push_back(root);
  model.kinds.push_back(model.kinds.front());
  for (int k : {0, 1}) {
    SegmentVariant &v = model.kinds[k].variants.front();
    v.forwardSeconds = k ? headForward : blockForward;
    v.backwardSeconds = k ? headBackward : blockBackward;
    v.forwardOps = v.backwardOps = 0;
  }
  model.calls[4].kind = 1;
  Candidate candidate = uniformCandidate(model, FrameworkKind::Fsdp2);
  candidate.mesh.resize("dp_shard", 4);
  candidate.ranksPerNode = 4;
  candidate.reshardAfterForward.back() = false; // the root's rule
  if (headIsUnit)
    candidate.reshardAfterForward[4] = false;
  Target machine = h100();
  machine.overlap = 1;
  machine.memoryBytesPerSecond = 1e18; // copies are not part of that model
  machine.memoryHalfBytes = machine.launchSeconds = 0;
  machine.insideNode = Link();
  machine.insideNode.bytesPerSecond = bytesPerSecond * 3 / 4; // rings of 4
  machine.insideNode.latencySeconds = 1e-5;
  const StepPrediction p = StepEvaluator(model, machine).evaluate(candidate);
  return 1e3 * p.exposedSeconds;
}

TEST(Executors, GoldenCaseOfTheFsdpIlp) {
  EXPECT_NEAR(exposedOfIlpModel(1e11, true) / 10.041, 1, 0.05);
  EXPECT_NEAR(exposedOfIlpModel(1e10, false) / 303.06, 1, 0.05);
}

TEST(Executors, CandidatesThatCannotRun) {
  const StepModel model = uniformModel(3, {8, 8}, 0);
  const Candidate good = uniformCandidate(model, FrameworkKind::Fsdp2);
  EXPECT_EQ(verifyCandidate(model, good), "");
  auto broken = [&](auto change) {
    Candidate candidate = good;
    change(candidate);
    return verifyCandidate(model, candidate);
  };
  EXPECT_EQ(broken([](Candidate &c) { c.variants.pop_back(); }),
            "variants has " + std::to_string(model.calls.size() - 1) +
                " entries, expected " + std::to_string(model.calls.size()));
  EXPECT_NE(broken([](Candidate &c) { c.variants[0] = 9; }), "");
  EXPECT_NE(broken([](Candidate &c) { c.unitOf[0] = -1; }), "");
  EXPECT_NE(broken([](Candidate &c) { c.unitOf[0] = c.numUnits(); }), "");
  EXPECT_NE(broken([](Candidate &c) { c.accumulation = 0; }), "");
  EXPECT_NE(broken([](Candidate &c) { c.mesh.resize("dp_shard", 0); }), "");
  EXPECT_NE(broken([](Candidate &c) { c.zeroStage = 4; }), "");
  EXPECT_NE(broken([](Candidate &c) { c.commHook = "fp8"; }), "");
  EXPECT_EQ(broken([](Candidate &c) {
              c.executor = FrameworkKind::Ddp;
              c.mesh.resize("dp_shard", 2);
            }),
            "ddp does not shard parameters");
  EXPECT_NE(broken([](Candidate &c) {
              c.executor = FrameworkKind::Deepspeed;
              c.zeroStage = 2;
              c.offloadParameters = true;
            }),
            "");
}

TEST(Executors, NamesRoundTrip) {
  for (const char *name :
       {"accel-run", "fsdp2", "fsdp1", "ddp", "deepspeed", "single"})
    EXPECT_STREQ(toString(*parseExecutor(name)), name);
  EXPECT_FALSE(parseExecutor("fsdp3"));
}

/// Extreme sizes neither overflow into negative seconds nor hang.
TEST(Executors, ExtremesEnd) {
  const Target machine = h100();
  for (const StepModel &model :
       {uniformModel(0, {1, 1}, 0), uniformModel(1, {1, 1}, 0)}) {
    Candidate candidate = uniformCandidate(model, FrameworkKind::Fsdp2);
    candidate.mesh.resize("dp_shard", 1000000);
    candidate.accumulation = 1000000;
    const StepPrediction p = StepEvaluator(model, machine).evaluate(candidate);
    EXPECT_GE(p.stepSeconds, 0);
    EXPECT_GE(p.peakBytes, p.persistentBytes);
  }
}

} // namespace
