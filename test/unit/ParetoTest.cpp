//===- ParetoTest.cpp - Fronts of segments, and shares of a budget --------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Recompute/Pareto.h"
#include "passes/Recompute/SavedSetCache.h"
#include "test/unit/JointFixture.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <random>

using namespace accel;
using namespace accel::test;

namespace {

/// A chain of matmuls, each followed by two pointwise operations, whose
/// results the backward reads; sizes vary with the seed.
JointGraph chain(unsigned seed, int length, int64_t scale = 1) {
  std::mt19937 random(seed);
  auto below = [&](int n) { return static_cast<int>(random() % n); };
  JointBuilder b;
  int value = b.input(4096 * scale);
  std::vector<int> read;
  for (int i = 0; i < length; ++i) {
    const int weight = b.param(64 * (8 + below(64)));
    const int64_t bytes = 1024 * (2 + below(14)) * scale;
    value = b.op(JointCategory::Matmul, "aten::mm", {value, weight}, {bytes},
                 1e9 * (1 + below(20)) * static_cast<double>(scale));
    read.push_back(value);
    for (int k = 0; k < 2; ++k) {
      value = b.op(JointCategory::Pointwise, "aten::silu", {value}, {bytes});
      read.push_back(value);
    }
  }
  b.output(value);
  int gradient = b.tangent(4096 * scale);
  for (size_t i = read.size(); i-- > 0;)
    gradient = b.op(JointCategory::Pointwise, "aten::mul.Tensor",
                    {gradient, read[i]}, {4096 * scale});
  b.gradient(gradient, false);
  return b.finish();
}

Target target() {
  Target t;
  t.memoryBytesPerSecond = 1e12;
  t.compute[plan::DType::F32].peakFlops = 1e13;
  t.launchSeconds = 1e-6;
  return t;
}

class Fronts : public testing::TestWithParam<int> {};

TEST_P(Fronts, HoldTheModesAndNothingDominated) {
  const JointGraph graph = chain(GetParam(), 5);
  const Target t = target();
  const std::vector<ParetoPoint> &front = paretoFront(graph, t, 15);
  ASSERT_GE(front.size(), 3u);
  SavedSetProblem problem(graph, instructionTimes(graph, t));
  problem.capBytes = INT64_MAX;
  auto beats = [](const SavedSetSolution &a, const SavedSetSolution &b) {
    return a.bytes.saved <= b.bytes.saved &&
           a.recomputeSeconds <= b.recomputeSeconds &&
           a.bytes.backwardHeldPeak <= b.bytes.backwardHeldPeak;
  };
  for (size_t i = 0; i < front.size(); ++i) {
    EXPECT_EQ(verifySavedSet(problem, front[i].solution), "");
    EXPECT_LE(front[i].solution.bytes.saved, front[i].capBytes);
    EXPECT_EQ(front[i].variant.savedBytes, front[i].solution.bytes.saved);
    if (i) {
      EXPECT_LE(front[i - 1].solution.bytes.saved,
                front[i].solution.bytes.saved);
    }
    for (size_t j = 0; j < front.size(); ++j)
      EXPECT_FALSE(i != j && beats(front[i].solution, front[j].solution) &&
                   !beats(front[j].solution, front[i].solution));
  }
  // Each mode is on the front or beaten by what is.
  for (const char *mode : {"none", "pointwise", "full"}) {
    const SavedSetSolution own =
        measureSavedSet(problem, savedByMode(graph, mode));
    EXPECT_TRUE(std::any_of(front.begin(), front.end(), [&](const auto &p) {
      return beats(p.solution, own);
    })) << mode;
  }
}

TEST_P(Fronts, WaysAreThoseBetweenTheModes) {
  const JointGraph graph = chain(GetParam(), 5),
                   large = chain(GetParam(), 5, 4);
  const Target t = target();
  SavedSetCache solved(15);
  const std::vector<SavedSetPlan> ways = solved.of("Layer", graph, t);
  SavedSetProblem problem(graph, instructionTimes(graph, t));
  problem.capBytes = INT64_MAX;
  const int64_t none =
      measureSavedSet(problem, savedByMode(graph, "none")).bytes.saved;
  int64_t before = none;
  for (const SavedSetPlan &way : ways) {
    const int64_t bytes = measureSavedSet(problem, way.saved).bytes.saved;
    EXPECT_LT(bytes, before) << "by falling share";
    EXPECT_GT(bytes, 0);
    EXPECT_EQ(way.name,
              std::to_string(std::lround(100.0 * static_cast<double>(bytes) /
                                         static_cast<double>(none))) +
                  "% kept");
    before = bytes;
  }
  // Another micro-batch takes over the sets, another function has its own.
  const std::vector<SavedSetPlan> &same = solved.of("Layer", large, t);
  ASSERT_EQ(same.size(), ways.size());
  for (size_t i = 0; i < ways.size(); ++i)
    EXPECT_EQ(same[i].saved, ways[i].saved);
  const JointGraph longer = chain(GetParam(), 6);
  const std::vector<SavedSetPlan> &other = solved.of("Layer", longer, t);
  ASSERT_EQ(other.size(), ways.size()) << "they correspond one by one";
  for (const SavedSetPlan &way : other)
    EXPECT_EQ(way.saved.size(), longer.marks.size());
  EXPECT_TRUE(SavedSetCache(0).of("Layer", graph, t).empty());
}

INSTANTIATE_TEST_SUITE_P(Chains, Fronts, testing::Range(0, 6));

TEST(Front, OneSetOnlyHasOnePoint) {
  JointBuilder b;
  int x = b.input(1024);
  b.output(b.op(JointCategory::Pointwise, "aten::silu", {x}, {1024}));
  int g = b.tangent(1024);
  b.gradient(b.op(JointCategory::Pointwise, "aten::mul.Tensor", {g, x}, {1024}),
             false);
  const JointGraph graph = b.finish();
  const Target t = target();
  ASSERT_EQ(paretoFront(graph, t, 10).size(), 1u);
  EXPECT_EQ(paretoFront(graph, t, 10)[0].solution.bytes.saved, 0);
  EXPECT_TRUE(SavedSetCache(10).of("F", graph, t).empty());
}

//===----------------------------------------------------------------------===//
// Shares
//===----------------------------------------------------------------------===//

/// Least seconds of all ways to give each call one, or infinity.
double leastSeconds(const std::vector<BudgetKind> &kinds, int64_t budget) {
  double best = INFINITY;
  std::function<void(size_t, int, size_t, int64_t, double)> visit =
      [&](size_t kind, int call, size_t way, int64_t bytes, double seconds) {
        if (bytes > budget || seconds >= best)
          return;
        if (kind == kinds.size()) {
          best = seconds;
          return;
        }
        if (call == kinds[kind].calls)
          return visit(kind + 1, 0, 0, bytes, seconds);
        // Calls are alike: their ways do not fall.
        for (size_t w = way; w < kinds[kind].bytes.size(); ++w)
          visit(kind, call + 1, w, bytes + kinds[kind].bytes[w],
                seconds + kinds[kind].seconds[w]);
      };
  visit(0, 0, 0, 0, 0);
  return best;
}

TEST(Share, IsTheBestOfAll) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    auto below = [&](int n) { return static_cast<int>(random() % n); };
    std::vector<BudgetKind> kinds(1 + below(2));
    int64_t most = 0;
    for (BudgetKind &kind : kinds) {
      kind.calls = 1 + below(5);
      int64_t largest = 0;
      for (int w = 0, n = 1 + below(4); w < n; ++w) {
        kind.bytes.push_back(64 * below(100));
        kind.seconds.push_back(1e-3 * below(1000));
        largest = std::max(largest, kind.bytes.back());
      }
      most += kind.calls * largest;
    }
    const int64_t budget = below(static_cast<int>(most + 64));
    const BudgetShare share = shareBudget(kinds, budget);
    const double least = leastSeconds(kinds, budget);
    ASSERT_EQ(share.feasible, least < INFINITY) << "seed " << seed;
    if (!share.feasible) {
      EXPECT_GT(share.leastBytes, budget);
      continue;
    }
    EXPECT_LE(share.bytes, budget);
    EXPECT_NEAR(share.seconds, least, 1e-9) << "seed " << seed;
    int64_t bytes = 0;
    ASSERT_EQ(share.ways.size(), kinds.size());
    for (size_t k = 0; k < kinds.size(); ++k) {
      ASSERT_EQ(share.ways[k].size(), static_cast<size_t>(kinds[k].calls));
      int64_t before = 0;
      for (int way : share.ways[k]) {
        EXPECT_GE(kinds[k].bytes[way], before) << "less bytes first";
        before = kinds[k].bytes[way];
        bytes += before;
      }
    }
    EXPECT_EQ(bytes, share.bytes);
  }
}

TEST(Share, SaysWhatIsTheLeast) {
  const BudgetShare share = shareBudget({{3, {100, 50}, {0, 1}}}, 149);
  EXPECT_FALSE(share.feasible);
  EXPECT_EQ(share.leastBytes, 150);
  EXPECT_TRUE(shareBudget({{3, {100, 50}, {0, 1}}}, 150).feasible);
  EXPECT_TRUE(shareBudget({}, 0).feasible);
}

} // namespace
