//===- JointGraphTest.cpp - Splits and what they hold ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "test/unit/JointFixture.h"

#include <gtest/gtest.h>

using namespace accel;
using namespace accel::test;

namespace {

/// y = silu(x w); dy -> dx, dw. Bytes are multiples of 64 so that they can be
/// added by hand: x, z, s are 256, w and dw 128.
JointGraph layer() {
  JointBuilder b;
  int x = b.input(256), w = b.param(128);
  int wt = b.view(w);
  int z = b.op(JointCategory::Matmul, "aten::mm", {x, wt}, {256}, 1e6);
  int s = b.op(JointCategory::Pointwise, "aten::silu", {z}, {256});
  b.output(s);
  int g = b.tangent(256);
  int dz = b.op(JointCategory::Pointwise, "aten::silu_backward", {g, z}, {256});
  int dzt = b.view(dz);
  int dw = b.op(JointCategory::Matmul, "aten::mm", {dzt, x}, {128}, 1e6);
  int dx = b.op(JointCategory::Matmul, "aten::mm", {dz, w}, {256}, 1e6);
  b.gradient(dx, false);
  b.gradient(dw, true);
  return b.finish();
}

TEST(JointGraph, KeptValuesCross) {
  JointGraph graph = layer();
  JointSplit split = splitGraph(graph, savedByMode(graph, "none"));
  EXPECT_EQ(split.forward, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(split.crossing, graph.function.instructions[1].results)
      << "of the kept values only the product is read";
  EXPECT_EQ(split.arguments.size(), 3u) << "the tangent, x and w";
  SplitBytes bytes = measureSplit(graph, split);
  EXPECT_EQ(bytes.saved, 256);
  EXPECT_EQ(bytes.savedInput, 256);
  EXPECT_EQ(bytes.forwardPeak, 512) << "product and output";
  EXPECT_EQ(bytes.backwardPeak, 512) << "dz and dx; dw is the executor's";
  EXPECT_EQ(bytes.backwardHeldPeak, 768) << "tangent, z and dz; both then end";
}

TEST(JointGraph, RecomputedValuesComeBeforeTheirFirstUse) {
  JointGraph graph = layer();
  JointSplit split = splitGraph(graph, savedByMode(graph, "full"));
  EXPECT_TRUE(split.crossing.empty());
  ASSERT_EQ(split.backward.size(), 6u) << "view and product, but not silu";
  EXPECT_EQ(split.backward[0], 0);
  EXPECT_EQ(split.backward[1], 1);
  SplitBytes bytes = measureSplit(graph, split);
  EXPECT_EQ(bytes.saved, 0);
  EXPECT_EQ(bytes.backwardPeak, 512);
  EXPECT_EQ(bytes.backwardHeldPeak, 768);
}

TEST(JointGraph, ALaterReaderHoldsAStorageThroughItsView) {
  JointBuilder b;
  int x = b.input(64);
  int a = b.op(JointCategory::Pointwise, "aten::exp", {x}, {64});
  int v = b.view(a);
  int c = b.op(JointCategory::Pointwise, "aten::exp", {x}, {64});
  int d = b.op(JointCategory::Pointwise, "aten::mul.Tensor", {c, v}, {64});
  b.output(d);
  JointGraph graph = b.finish();
  JointSplit split = splitGraph(graph, SavedSet(graph.marks.size()));
  EXPECT_EQ(measureSplit(graph, split).forwardPeak, 3 * 64);
}

TEST(JointGraph, OrderLowersThePeak) {
  // Both exponentials first, then their sums: two tables live. One after the
  // other: one table and a number.
  JointBuilder b;
  int x = b.input(16384), y = b.input(16384);
  b.output(x);
  int g = b.tangent(64);
  b.backward();
  int p = b.op(JointCategory::Pointwise, "aten::exp", {x, g}, {16384});
  int q = b.op(JointCategory::Pointwise, "aten::exp", {y, g}, {16384});
  b.gradient(b.op(JointCategory::Reduction, "aten::sum", {p}, {256}), false);
  b.gradient(b.op(JointCategory::Reduction, "aten::sum", {q}, {256}), false);
  JointGraph graph = b.finish();
  SavedSet saved(graph.marks.size());
  EXPECT_EQ(measureSplit(graph, splitGraph(graph, saved, false)).backwardPeak,
            2 * 16384 + 256);
  EXPECT_EQ(measureSplit(graph, splitGraph(graph, saved)).backwardPeak,
            16384 + 2 * 256);
}

TEST(JointGraph, AProductThatOverwritesItsOwnFactorGoesFirst) {
  // Of a gated MLP's two derivatives, the one whose other factor is repeated
  // in the backward is written over that, and then the other over the common
  // factor.
  const auto products = [](bool actIsKept) {
    JointBuilder b;
    int gate = b.input(256), w = b.param(256);
    int up = b.op(JointCategory::Pointwise, "aten::exp", {gate}, {256});
    int act = b.op(JointCategory::Pointwise, "aten::silu", {gate}, {256});
    int gated =
        b.op(JointCategory::Pointwise, "aten::mul.Tensor", {act, up}, {256});
    int g = b.tangent(256);
    b.gradient(b.op(JointCategory::Matmul, "aten::mm", {g, gated}, {128}),
               true);
    int d = b.op(JointCategory::Matmul, "aten::mm", {g, w}, {256});
    int ofAct =
        b.op(JointCategory::Pointwise, "aten::mul.Tensor", {d, up}, {256});
    int ofUp =
        b.op(JointCategory::Pointwise, "aten::mul.Tensor", {d, act}, {256});
    b.gradient(ofUp, false);
    b.gradient(b.op(JointCategory::Pointwise, "aten::silu_backward",
                    {ofAct, gate}, {256}),
               false);
    b.output(gated);
    JointGraph graph = b.finish();
    SavedSet saved(graph.marks.size());
    saved[0] = true;
    saved[1] = actIsKept;
    std::vector<std::string> order;
    for (int op : splitGraph(graph, saved).backward)
      if (op == 5 || op == 6)
        order.push_back(op == 6 ? "over the activation" : "by the other");
    return order;
  };
  EXPECT_EQ(products(false),
            (std::vector<std::string>{"over the activation", "by the other"}));
  EXPECT_EQ(products(true),
            (std::vector<std::string>{"by the other", "over the activation"}))
      << "a kept value is not the backward's";
}

TEST(JointGraph, SecondsFollowTheSplit) {
  JointGraph graph = layer();
  Target target;
  target.kind = TargetKind::Cuda;
  target.launchSeconds = 1e-6;
  target.memoryBytesPerSecond = 1e12;
  target.compute[plan::DType::F32] = {1e12, 1, 1};
  const double product = 1e-6 + 1e6 / 1e12;
  SegmentVariant none =
      measureVariant(graph, savedByMode(graph, "none"), target);
  SegmentVariant full =
      measureVariant(graph, savedByMode(graph, "full"), target);
  EXPECT_EQ(none.recomputeSeconds, 0);
  EXPECT_NEAR(full.recomputeSeconds, product, 1e-12);
  EXPECT_NEAR(full.backwardSeconds - none.backwardSeconds, product, 1e-12);
  EXPECT_EQ(none.forwardSeconds, full.forwardSeconds);
  EXPECT_EQ(none.forwardOps, 2);
  EXPECT_EQ(none.backwardOps, 3) << "views launch nothing";
  EXPECT_EQ(full.backwardOps, 4);
}

} // namespace
