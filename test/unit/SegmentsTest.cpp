//===- SegmentsTest.cpp - What the allocator holds for a plan -------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// That torch's allocator is asked for these tensors and holds these bytes is
// tested on the dry GPU (test/dry/run.py -k segments).
//
//===----------------------------------------------------------------------===//
#include "passes/Segments/Segments.h"
#include "test/unit/PlanFixture.h"

#include <gtest/gtest.h>

using namespace accel;
using namespace accel::plan;

namespace {

/// Bytes that are live after each event of a problem.
struct Levels {
  explicit Levels(const replay::Problem &problem)
      : bytes(static_cast<size_t>(problem.tensors)) {
    for (const replay::Event &event : problem.events) {
      if (event.action == replay::Action::StepEnd) {
        ends.push_back(live);
      } else if (event.action == replay::Action::Allocate) {
        live += bytes[event.tensor] = event.bytes;
        peak = std::max(peak, live);
      } else {
        live -= bytes[event.tensor];
      }
    }
  }
  std::vector<int64_t> bytes, ends; // by tensor, of steps
  int64_t live = 0, peak = 0;
};

Target cuda() {
  Target target;
  target.kind = TargetKind::Cuda;
  target.capability = 9.0;
  return target;
}

class SegmentsOfPlan : public testing::TestWithParam<test::Size> {};

TEST_P(SegmentsOfPlan, TensorsAreThoseOfTheMemoryModel) {
  const Plan plan = test::makePlan(GetParam());
  PlanTensors tensors(plan, 0, {cuda().capability});
  for (int step = 0; step < 3; ++step)
    tensors.step();
  tensors.evaluate();
  EXPECT_EQ(replay::verify(tensors.problem()), "");
  const Levels levels(tensors.problem());
  ASSERT_EQ(levels.ends.size(), 3U);
  // What stays is what persists, and a few numbers.
  for (int64_t end : levels.ends) {
    EXPECT_GE(end, plan.predicted.persistentBytes);
    EXPECT_LE(end, plan.predicted.persistentBytes + 4096);
  }
  EXPECT_EQ(levels.live, levels.ends.back());
  // At the peak there can be one workspace beside the rank's own buffers.
  EXPECT_GE(levels.peak, plan.predicted.ownPeakBytes);
  EXPECT_LE(levels.peak, plan.predicted.ownPeakBytes + 4096 +
                             gemmWorkspace(cuda().capability));
}

TEST_P(SegmentsOfPlan, SegmentsHoldTheTensors) {
  const Plan plan = test::makePlan(GetParam());
  const SegmentBytes growing =
      replaySegments(plan, cuda(), {accelRunAllocator()});
  const SegmentBytes fixed = replaySegments(plan, cuda(), {});
  for (const SegmentBytes &bytes : {growing, fixed}) {
    EXPECT_GE(bytes.reserved, bytes.allocated);
    EXPECT_GE(bytes.allocated, plan.predicted.ownPeakBytes);
  }
  EXPECT_EQ(growing.reserved % (2 << 20), 0);
  Target older = cuda();
  older.capability = 8.0; // smaller workspaces
  const SegmentBytes less = replaySegments(plan, older, {accelRunAllocator()});
  EXPECT_LE(less.reserved, growing.reserved);
  EXPECT_LE(less.allocated, growing.allocated);
}

/// torch 2.11: one workspace more than what persists, from the first product
/// on, instead of one for each.
TEST_P(SegmentsOfPlan, KeptWorkspacesPersist) {
  const Plan plan = test::makePlan(GetParam());
  const int64_t workspace = gemmWorkspace(cuda().capability);
  PlanTensors tensors(plan, 0, {cuda().capability}, /*keepsWorkspaces=*/true);
  for (int step = 0; step < 3; ++step)
    tensors.step();
  EXPECT_EQ(replay::verify(tensors.problem()), "");
  const Levels levels(tensors.problem());
  for (int64_t end : levels.ends) {
    EXPECT_GE(end, plan.predicted.persistentBytes + workspace);
    EXPECT_LE(end, plan.predicted.persistentBytes + workspace + 4096);
  }
  EXPECT_EQ(tensors.keptBytes(), workspace);
  EXPECT_EQ(keptWorkspaceBytes(plan, cuda(), {{}, /*keepsWorkspaces=*/true}),
            workspace);
  EXPECT_EQ(keptWorkspaceBytes(plan, cuda(), {}), 0);
  EXPECT_GE(levels.peak, plan.predicted.ownPeakBytes + workspace);
  EXPECT_LE(levels.peak, plan.predicted.ownPeakBytes + workspace + 4096);
}

test::Size wide() {
  test::Size size;
  size.hidden = 512;
  size.feedForward = 2048;
  size.keyValue = 256;
  size.vocab = 8192;
  size.tokens = 1024;
  return size;
}
test::Size accumulated() {
  test::Size size = wide();
  size.accumulation = 3;
  size.gather = size.reduce = DType::BF16;
  return size;
}
test::Size whole() {
  test::Size size = wide();
  size.whole = true;
  return size;
}

INSTANTIATE_TEST_SUITE_P(Segments, SegmentsOfPlan,
                         testing::Values(test::Size(), wide(), accumulated(),
                                         whole()));

/// As torch 2.15 was seen to ask for, by shape.
TEST(InnerBytes, OfAttentionsBackward) {
  auto inner = [](const std::string &op, DType dtype,
                  std::vector<int64_t> query, std::vector<int64_t> key) {
    test::FunctionBuilder f("f");
    const int g = f.input(dtype, query), q = f.input(dtype, query);
    const int k = f.input(dtype, key), v = f.input(dtype, key);
    f.make(op, {g, q, k, v}, dtype, query);
    const Function function = f.finish({});
    return innerBytesOfAll(function, function.instructions[0], {9.0}).after;
  };
  using Bytes = std::vector<int64_t>;
  EXPECT_EQ(inner("aten::_scaled_dot_product_cudnn_attention_backward",
                  DType::BF16, {2, 4, 32, 32}, {2, 4, 32, 32}),
            Bytes({33792}));
  EXPECT_EQ(inner("aten::_scaled_dot_product_efficient_attention_backward",
                  DType::F32, {2, 5, 17, 8}, {2, 5, 17, 8}),
            Bytes({5440, 680, 680, -2, -1, 164000}));
  EXPECT_EQ(inner("aten::_scaled_dot_product_efficient_attention_backward",
                  DType::BF16, {2, 3, 32, 24}, {2, 3, 32, 24}),
            Bytes({768, 98400}));
  EXPECT_EQ(inner("aten::_scaled_dot_product_efficient_attention_backward",
                  DType::F32, {4, 4, 256, 64}, {4, 2, 256, 64}),
            Bytes({1048576, 1048576, 1048576, 16384, 16384, -4, -3, 1049600}));
  // Tokens come before heads, and each head has its gradient of shared keys.
  EXPECT_EQ(inner("aten::_flash_attention_backward", DType::BF16,
                  {2, 32, 4, 16}, {2, 32, 2, 16}),
            Bytes({4096, 131072, 8192, 8192}));
}

/// Numbers of a generator's state, on the device for flash attention alone.
TEST(InnerBytes, OfAttentionThatDrops) {
  const std::vector<int64_t> shape = {2, 4, 32, 16};
  auto inner = [&](const std::string &op, bool backward) {
    test::FunctionBuilder f("f");
    const int q = f.input(DType::BF16, shape);
    f.make(op,
           backward ? std::vector<int>{q, q, q, q} : std::vector<int>{q, q, q},
           DType::BF16, shape);
    const Function function = f.finish({});
    return innerBytesOfAll(function, function.instructions[0], {9.0});
  };
  using Bytes = std::vector<int64_t>;
  const int64_t sums = 2 * 4 * 32 * 4; // a result that is not taken here
  EXPECT_EQ(inner("accel::flash_attention", false).after,
            Bytes({16, 8, 16, sums}));
  EXPECT_EQ(inner("accel::efficient_attention", false).after, Bytes({sums}));
  EXPECT_TRUE(inner("accel::efficient_attention", false).before.empty());
  EXPECT_EQ(inner("accel::flash_attention_backward", true).before, Bytes({16}));
  EXPECT_EQ(
      inner("accel::flash_attention_backward", true).after,
      inner("aten::_scaled_dot_product_flash_attention_backward", true).after);
  EXPECT_TRUE(
      inner("accel::efficient_attention_backward", true).before.empty());
}

/// The first two as torch 2.15 was seen to ask for on 132 multiprocessors.
TEST(InnerBytes, OfSums) {
  auto sum = [](std::vector<int64_t> shape, std::vector<bool> reduced,
                CudaDevice device = {9.0, 132}) {
    return reductionBytes(shape, reduced, 4, device);
  };
  using Bytes = std::vector<int64_t>;
  EXPECT_EQ(sum({8192, 4096}, {true, false}), Bytes({138412032, 128}));
  EXPECT_EQ(sum({8192, 2048}, {true, false}), Bytes({134217728, 64}));
  EXPECT_EQ(sum({2, 4096, 4096}, {true, true, false}),
            sum({8192, 4096}, {true, false}));
  // 108 multiprocessors are fewer blocks.
  EXPECT_EQ(sum({8192, 4096}, {true, false}, {8.0, 108}),
            Bytes({int64_t(4) * 4096 * 54 * 128, 128}));
  EXPECT_TRUE(sum({512, 4096}, {true, false}).empty()) << "a block sums all";
  EXPECT_TRUE(sum({8192, 4096}, {false, true}).empty()) << "along a row";
  EXPECT_TRUE(sum({8192, 4096}, {true, false}, {}).empty()) << "not known";
  // Of all elements 528 blocks share one number each.
  EXPECT_EQ(sum({8192, 4096}, {true, true}), Bytes({4 * 528, 4}));
}

TEST(InnerBytes, PeakFollowsWhatIsDropped) {
  EXPECT_EQ(peakOf({}), 0);
  EXPECT_EQ(peakOf({{8}, {100, 30, -2, -1, 120}}), 138);
  EXPECT_EQ(peakOf({{8}, {100, 30, -2, -1, 20}}), 138);
  EXPECT_EQ(peakOf({{8}, {100, 30, -2, -1, 200}}), 208);
}

TEST(InnerBytes, OfMatmulsAndMasks) {
  test::FunctionBuilder f("f");
  const int bias = f.input(DType::BF16, {64}), a = f.input(DType::BF16, {8, 8});
  f.make("aten::mm", {a, a}, DType::BF16, {8, 8});
  f.make("aten::addmm", {bias, a, a}, DType::BF16, {8, 64});
  f.make("aten::addmm", {a, a, a}, DType::BF16, {8, 8});
  f.make("aten::mul.Tensor", {a, a}, DType::BF16, {8, 8});
  f.make("accel::dropout", {a}, DType::BF16, {8, 8});
  const Function function = f.finish({});
  auto inner = [&](int i, double capability) {
    return innerBytesOfAll(function, function.instructions[i], {capability});
  };
  using Bytes = std::vector<int64_t>;
  EXPECT_EQ(inner(0, 9.0).after, Bytes({33554432}));
  EXPECT_EQ(inner(0, 8.0).after, Bytes({8519680}));
  EXPECT_EQ(inner(0, 10.0).after, Bytes({33554432}));
  EXPECT_EQ(inner(1, 9.0).after, Bytes({1048576}));
  EXPECT_EQ(inner(2, 9.0).after, Bytes({33554432}));
  EXPECT_TRUE(inner(3, 9.0).after.empty());
  EXPECT_EQ(inner(4, 9.0).before, Bytes({64}));
}

} // namespace
