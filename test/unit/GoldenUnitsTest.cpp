//===- GoldenUnitsTest.cpp - The golden case of torch's fsdp_ilp ----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// PyTorch had a planner of FSDP units for some hours (fsdp_ilp, #138635, taken
// back by #140292). Its test gives the statistics of a transformer, as traced,
// and what the planner says of sets of units on 4 ranks. Bytes and exposed
// seconds are held against the executor's model here. Its peak is a bound:
//   (P + TG) / N + 2 (root + unit) + activations + 2 max unit
// with TG all gradients that can be there and the last term for whatever is
// prefetched or being reduced; each term's part in the simulated peak is known.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/StepLayout.h"
#include "runtime/plan/Optimizers.h"
#include "test/unit/StepModels.h"

#include "gtest/gtest.h"

using namespace accel;
using namespace accel::stepmodels;

namespace {

// Bytes and milliseconds of test_fsdp_ilp.py.
constexpr int64_t whole = 1960000000, layerBytes = 453095424,
                  outputBytes = 100663296, hiddenBytes = 25165824,
                  logitsBytes = 67108864;
constexpr int64_t activationsOfLayer2 = 1357261824;               // act_total
constexpr int64_t savedByLayer = activationsOfLayer2 - 941893632; // layers.1's
constexpr int64_t gradientsInLayer = 276836352;   // act_grad_per_module
constexpr int64_t gradientsOfLayer2 = 1359310848; // grad_total
constexpr int ranks = 4, layers = 4;

class GoldenModel {
public:
  explicit GoldenModel(bool outputAlone) {
    model.device = "cuda";
    model.microBatch = 2;
    model.sequenceLength = 1024;
    const int64_t embedding = whole - layers * layerBytes - outputBytes;
    kind("Embedding", embedding, 0, hiddenBytes, 0, 0);
    kind("TransformerBlock", layerBytes, hiddenBytes, hiddenBytes, 18.586358963,
         42.314448842);
    kind("Output", outputBytes, hiddenBytes, logitsBytes, 3.724933048,
         8.000336731);
    int at = value(2 * 1024 * 8, -1, false);
    at = call(0, "tok_embeddings", embedding, at, hiddenBytes);
    for (int i = 0; i < layers; ++i)
      at = call(1, "layers." + std::to_string(i), layerBytes, at, hiddenBytes);
    call(2, "output", outputBytes, at, logitsBytes);
    model.values.back().gradient = false;
    StepUnit root;
    root.root = true;
    root.reshardAfterForward = false;
    root.parameters = {0};
    for (int i = 0; i < layers; ++i)
      unit("layers." + std::to_string(i), i + 1);
    if (outputAlone)
      unit("output", layers + 1);
    else
      root.parameters.push_back(layers + 1);
    model.units.push_back(root);
  }

  Candidate candidate() const {
    Candidate result = uniformCandidate(model, FrameworkKind::Fsdp2);
    result.mesh.resize("dp_shard", ranks);
    plan::OptimizerRule none = *adamwRule();
    none.states.clear(); // the planner has no optimizer
    result.update = std::make_shared<const plan::OptimizerRule>(none);
    result.optimizer = OptimizerKernel::Fused;
    return result;
  }

  StepModel model;

private:
  void kind(const char *name, int64_t parameters, int64_t in, int64_t out,
            double forwardMs, double backwardMs) {
    SegmentKind kind;
    kind.name = name;
    kind.inputBytes = in ? in : 2 * 1024 * 8;
    kind.outputBytes = out;
    kind.inputGradientBytes = in;
    if (in)
      kind.inputGradients = {0};
    kind.parameterGradientBytes = parameters;
    SegmentVariant v;
    v.name = "none";
    v.forwardSeconds = forwardMs * 1e-3;
    v.backwardSeconds = backwardMs * 1e-3;
    v.savedBytes = in == out && in ? savedByLayer - hiddenBytes : 0;
    v.savedInputBytes = kind.inputBytes;
    v.forwardPeakBytes = v.savedBytes + out;
    // The gradient of the output is a value between calls.
    v.backwardPeakBytes = in == out && in ? gradientsInLayer - hiddenBytes : in;
    v.backwardPeakFreshBytes = v.backwardPeakAddedBytes =
        v.backwardPeakBytes + parameters;
    v.savesInput = {true};
    v.savesOutput = {false};
    v.backwardReads = {true};
    kind.variants.push_back(v);
    model.kinds.push_back(kind);
  }
  int value(int64_t bytes, int producer, bool gradient) {
    model.values.push_back({bytes, producer, gradient, bytes});
    return static_cast<int>(model.values.size()) - 1;
  }
  int call(int kind, const std::string &path, int64_t bytes, int input,
           int64_t out) {
    const int index = static_cast<int>(model.calls.size());
    StepParameter parameter;
    parameter.fqn = path + ".weight";
    parameter.shape = {ranks, bytes / 4 / ranks};
    model.parameters.push_back(parameter);
    StepCall call;
    call.kind = kind;
    call.path = path;
    call.layer = kind == 1;
    call.inputs = {input};
    call.outputs = {value(out, index, true)};
    call.parameters = {index};
    model.calls.push_back(call);
    return call.outputs.front();
  }
  void unit(const std::string &name, int parameter) {
    StepUnit unit;
    unit.name = name;
    unit.parameters = {parameter};
    model.units.push_back(unit);
  }
};

/// Collectives of `bytesPerMs` and 0.01 ms, whatever the number of ranks;
/// nothing else takes time.
Target network(double bytesPerMs) {
  Target target;
  target.name = "golden";
  target.kind = TargetKind::Cuda;
  target.ranksPerNode = ranks;
  target.memoryBytesPerSecond = 1e18;
  target.insideNode.bytesPerSecond = bytesPerMs * 1e3 * (ranks - 1) / ranks;
  target.insideNode.latencySeconds = 1e-5;
  target.betweenNodes = target.insideNode;
  return target;
}

/// test_fsdp_ilp_case2: units as the user gives them.
TEST(GoldenUnits, BytesOfUnits) {
  const GoldenModel golden(/*outputAlone=*/true);
  const Target target = network(1e8);
  const Candidate candidate = golden.candidate();
  StepLayout layout(golden.model, target);
  layout.prepare(candidate, RankClass::First);
  int64_t shards = 0, unsharded = 0, gradients = 0;
  for (const UnitSizes &unit : layout.units) {
    shards += unit.shardStored;
    unsharded += unit.unsharded;
    gradients += unit.gradients;
  }
  // Each shard is rounded up to 512 bytes.
  EXPECT_NEAR(shards, whole / ranks, 511 * candidate.numUnits());
  EXPECT_EQ(unsharded, whole); // param_per_module, grad_per_module
  EXPECT_EQ(gradients, whole);
  EXPECT_EQ(layout.units[0].unsharded, layerBytes);
  EXPECT_EQ(layout.units[4].unsharded, outputBytes);
  const StepPrediction p =
      StepEvaluator(golden.model, target).evaluate(candidate);
  EXPECT_EQ(p.persistentBytes, shards);
}

TEST(GoldenUnits, ExposedAndPeakOfUserUnits) {
  const GoldenModel golden(/*outputAlone=*/true);
  const Target target = network(1e8);
  const StepPrediction p =
      StepEvaluator(golden.model, target).evaluate(golden.candidate(), true);
  EXPECT_NEAR(p.exposedSeconds * 1e3, 10.041, 1e-3);
  // The planner's bound is of layers.3, whose next reduction it takes to be as
  // large as any; the step's peak is one layer on.
  EXPECT_LT(p.peakBytes, 4672311956);
  EXPECT_EQ(p.peakWhere, "backward of layers.2");
  constexpr int64_t root = whole - layers * layerBytes - outputBytes;
  constexpr int64_t bound = (whole + gradientsOfLayer2) / ranks +
                            2 * (root + layerBytes) + activationsOfLayer2 +
                            gradientsInLayer + 2 * layerBytes;
  // What it counts and is not there: the root's gradients, shards of gradients
  // that are still to come, and activations that belong to no layer.
  constexpr int64_t toCome =
      (gradientsOfLayer2 - outputBytes - layerBytes) / ranks;
  constexpr int64_t ofNoLayer = activationsOfLayer2 - 3 * savedByLayer;
  const int64_t rounded = p.persistentBytes - whole / ranks;
  EXPECT_EQ(p.peakBytes, bound - root - toCome - ofNoLayer + rounded +
                             batchBytes(golden.model));
  EXPECT_EQ(p.atPeak[static_cast<int>(Holding::Gathered)],
            root + 2 * layerBytes);
  EXPECT_EQ(p.atPeak[static_cast<int>(Holding::Gradients)],
            (outputBytes + layerBytes) / ranks);
}

/// test_fsdp_ilp_case4: a tenth of the bandwidth, within the test's own 5 %.
TEST(GoldenUnits, SlowNetwork) {
  const GoldenModel golden(/*outputAlone=*/false);
  const Target target = network(1e7);
  const StepPrediction p =
      StepEvaluator(golden.model, target).evaluate(golden.candidate(), true);
  EXPECT_NEAR(p.exposedSeconds * 1e3, 303.06, 0.05 * 303.06);
  EXPECT_LT(p.peakBytes, 4873638548);
}

} // namespace
