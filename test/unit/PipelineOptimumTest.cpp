//===- PipelineOptimumTest.cpp - Schedules beside the best orders ---------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/PipelineSchedules/SearchOrders.h"
#include "passes/PipelineSchedules/Verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

using namespace accel::pipeline;

namespace {

Costs costsOf(int stages, const std::function<double()> &seconds) {
  Costs costs;
  for (int stage = 0; stage < stages; ++stage) {
    StageCost cost;
    cost.forward = seconds();
    cost.backwardInput = seconds();
    cost.backwardWeight = seconds();
    costs.stages.push_back(cost);
  }
  return costs;
}

/// The search's own answer is a schedule that takes as long as it says.
void expectSound(const Problem &problem, const Costs &costs,
                 const BestOrder &best) {
  ASSERT_TRUE(best.proven) << best.nodes << " nodes";
  EXPECT_EQ(verify(problem, best.schedule), "");
  EXPECT_DOUBLE_EQ(simulate(problem, best.schedule, costs)->makespan,
                   best.makespan);
}

double makespan(const Problem &problem, const Costs &costs) {
  return simulate(problem, makeSchedule(problem), costs)->makespan;
}

// Two ranks and two micro-batches: of all pairs of orders, the fastest.
TEST(PipelineOptimum, SearchFindsTheBestOfAllOrders) {
  const Problem problem = {Kind::OneFOneB, 2, 1, 2};
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    Costs costs = costsOf(2, [&] { return 1.0 + random() % 5; });
    costs.transfer = random() % 3;
    double fastest = 1e30;
    std::vector<int> a = {0, 1, 2, 3}, b = a;
    const auto action = [](int stage, int i) {
      return Action{stage, i / 2, i % 2 ? Pass::Backward : Pass::Forward};
    };
    do
      do {
        Schedule schedule = {{{}, {}}, {2, 2}};
        for (int i = 0; i < 4; ++i) {
          schedule.ranks[0].push_back(action(0, a[i]));
          schedule.ranks[1].push_back(action(1, b[i]));
        }
        if (verify(problem, schedule).empty())
          fastest =
              std::min(fastest, simulate(problem, schedule, costs)->makespan);
      } while (std::next_permutation(b.begin(), b.end()));
    while (std::next_permutation(a.begin(), a.end()));
    const BestOrder best = bestOrder(problem, costs);
    expectSound(problem, costs, best);
    EXPECT_DOUBLE_EQ(best.makespan, fastest);
  }
}

// With stages that are alike nothing is faster than 1F1B, and with others it is
// not below the optimum.
TEST(PipelineOptimum, OneFOneB) {
  for (const Problem problem : {Problem{Kind::OneFOneB, 2, 1, 3},
                                {Kind::OneFOneB, 3, 1, 2},
                                {Kind::OneFOneB, 2, 1, 4}}) {
    const Costs alike = costsOf(problem.stages, [] { return 1.0; });
    const BestOrder best = bestOrder(problem, alike);
    expectSound(problem, alike, best);
    EXPECT_DOUBLE_EQ(makespan(problem, alike), best.makespan);
    std::mt19937 random(5);
    for (int round = 0; round < 5; ++round) {
      const Costs costs =
          costsOf(problem.stages, [&] { return 1.0 + random() % 4; });
      const BestOrder one = bestOrder(problem, costs);
      expectSound(problem, costs, one);
      EXPECT_GE(makespan(problem, costs), one.makespan);
    }
  }
}

// Split backwards: ZB-H1 beside the best order with as many frames.
TEST(PipelineOptimum, ZbH1) {
  for (const Problem problem :
       {Problem{Kind::ZbH1, 2, 1, 2}, {Kind::ZbH1, 2, 1, 3}}) {
    const Costs alike = costsOf(problem.stages, [] { return 1.0; });
    OrderSearch search;
    search.splitBackward = true;
    search.frames = makeSchedule(problem).frames;
    const BestOrder best = bestOrder(problem, alike, search);
    expectSound(problem, alike, best);
    EXPECT_GE(makespan(problem, alike), best.makespan);
    EXPECT_LE(countFrames(problem, best.schedule)[0], search.frames[0]);
    // A split backward is never slower than a whole one.
    EXPECT_LE(best.makespan, bestOrder(problem, alike).makespan);
    // One frame a stage: one micro-batch behind the other, but for the
    // weights' parts.
    search.frames.assign(problem.stages, 1);
    const BestOrder narrow = bestOrder(problem, alike, search);
    expectSound(problem, alike, narrow);
    EXPECT_GT(narrow.makespan, best.makespan);
    EXPECT_EQ(countFrames(problem, narrow.schedule),
              std::vector<int>(problem.stages, 1));
  }
}

TEST(PipelineOptimum, ChunksAndTheV) {
  for (const Problem problem :
       {Problem{Kind::Interleaved, 4, 2, 2}, {Kind::ZbV, 4, 2, 1}}) {
    OrderSearch search;
    search.splitBackward = problem.kind == Kind::ZbV;
    const Costs alike = costsOf(problem.stages, [] { return 1.0; });
    const BestOrder best = bestOrder(problem, alike, search);
    expectSound(problem, alike, best);
    EXPECT_GE(makespan(problem, alike), best.makespan);
  }
}

TEST(PipelineOptimum, ALimitOfNodesIsSaid) {
  const Problem problem = {Kind::OneFOneB, 3, 1, 4};
  OrderSearch search;
  search.maxNodes = 50;
  EXPECT_FALSE(
      bestOrder(problem, costsOf(3, [] { return 1.0; }), search).proven);
}

} // namespace
