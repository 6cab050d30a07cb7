//===- OverlapOrderTest.cpp - Operators beside exchanges ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Overlap/OverlapOrder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

using namespace accel;

namespace {

using Steps = std::vector<OverlapStep>;
using Beside = OverlapRule::Beside;

OverlapNode computes(double seconds, std::vector<int> reads = {}) {
  return {seconds, false, std::move(reads)};
}
OverlapNode exchanges(double seconds, std::vector<int> reads = {}) {
  return {seconds, true, std::move(reads)};
}

double secondsOf(const std::vector<OverlapNode> &nodes, const Steps &steps,
                 double hidden = 1) {
  return overlapSeconds(nodes, steps, hidden);
}

// The sum of an input's gradient (1) has the weight's gradient (3) beside it.
const std::vector<OverlapNode> backward = {computes(1), exchanges(2, {0}),
                                           computes(1, {1}), computes(3, {0})};

TEST(OverlapOrder, LaterOperatorsRunBesideAnExchange) {
  EXPECT_EQ(overlapOrder(backward, {Beside::Results, 0}),
            (Steps{{0}, {1}, {3}, {1, true}, {2}}));
  EXPECT_EQ(secondsOf(backward, overlapOrder(backward, {Beside::Results, 0})),
            5);
}

TEST(OverlapOrder, WhatCanWaitComesBehindAnExchange) {
  // Of the gradients of three weights (1, 2 and 3) the nearest ones are enough.
  const std::vector<OverlapNode> nodes = {
      computes(1),      computes(2, {0}),  computes(2, {0}), computes(2, {0}),
      computes(1, {0}), exchanges(3, {4}), computes(1, {5})};
  EXPECT_EQ(overlapOrder(nodes, {Beside::Results, 0}),
            (Steps{{0}, {1}, {2}, {3}, {4}, {5}, {6}}));
  EXPECT_EQ(overlapOrder(nodes, {Beside::Results, 0, true}),
            (Steps{{0}, {1}, {4}, {5}, {2}, {3}, {5, true}, {6}}));
  // What already stands beside it is counted.
  std::vector<OverlapNode> beside = nodes;
  beside.insert(beside.begin() + 6, computes(2, {0}));
  beside.back().reads = {5};
  EXPECT_EQ(overlapOrder(beside, {Beside::None, 0, true}),
            (Steps{{0}, {1}, {2}, {4}, {5}, {3}, {6}, {5, true}, {7}}));
}

TEST(OverlapOrder, NothingBesideIsNothingStarted) {
  EXPECT_EQ(overlapOrder(backward, {Beside::None, 0}),
            (Steps{{0}, {1}, {2}, {3}}));
}

TEST(OverlapOrder, WhatStandsThereNeedsNoOther) {
  const std::vector<OverlapNode> nodes = {exchanges(2), computes(3),
                                          computes(1, {0})};
  EXPECT_EQ(overlapOrder(nodes, {Beside::None, 0}),
            (Steps{{0}, {1}, {0, true}, {2}}));
}

TEST(OverlapOrder, OnlyResultsDoNotFeedAnExchange) {
  // 3 feeds an exchange: it is no result, and waits where it stands.
  const std::vector<OverlapNode> nodes = {exchanges(2), computes(1, {0}),
                                          computes(1), exchanges(1, {2}),
                                          computes(1, {3})};
  EXPECT_EQ(overlapOrder(nodes, {Beside::Results, 0}).front(), OverlapStep{0});
  EXPECT_EQ(overlapOrder(nodes, {Beside::Results, 0})[1], OverlapStep{1});
  EXPECT_EQ(overlapOrder(nodes, {Beside::Any, 0})[1], OverlapStep{2});
}

TEST(OverlapOrder, StartsAheadOfItsReaderAlone) {
  // Ten operators before the exchange's place: it starts three ahead of its
  // reader, not at once.
  std::vector<OverlapNode> nodes;
  for (int i = 0; i < 10; ++i)
    nodes.push_back(computes(1));
  nodes.push_back(exchanges(2));
  nodes.push_back(computes(1, {10, 9}));
  const Steps steps = overlapOrder(nodes, {Beside::Any, 1.5});
  EXPECT_EQ(overlapProblem(nodes, steps), "");
  const auto at = std::find(steps.begin(), steps.end(), OverlapStep{10});
  EXPECT_EQ(at - steps.begin(), 7);
  EXPECT_EQ(secondsOf(nodes, steps), 11);
}

TEST(OverlapOrder, WhatCannotBeHiddenIsTaken) {
  const Steps steps = overlapOrder(backward, {Beside::Results, 0, false, 0.25});
  EXPECT_EQ(steps, (Steps{{0}, {1}, {3}, {1, true}, {2}}));
  EXPECT_EQ(secondsOf(backward, steps, 0.25), 6.5);
}

TEST(OverlapOrder, RandomGraphsKeepTheirOrder) {
  std::mt19937 random(7);
  auto below = [&](int n) { return static_cast<int>(random() % n); };
  int gained = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<OverlapNode> nodes;
    const int size = 2 + below(24);
    for (int i = 0; i < size; ++i) {
      OverlapNode node =
          below(4) ? computes(below(4)) : exchanges(1 + below(5));
      for (int read = 0; i > 0 && read < below(4); ++read)
        node.reads.push_back(below(i));
      nodes.push_back(node);
    }
    Steps plain;
    for (int i = 0; i < size; ++i)
      plain.push_back({i});
    for (Beside beside : {Beside::None, Beside::Results, Beside::Any})
      for (double ahead : {0.0, 1.5, 100.0})
        for (bool postpones : {false, true}) {
          const OverlapRule rule = {beside, ahead, postpones};
          const Steps steps = overlapOrder(nodes, rule);
          ASSERT_EQ(overlapProblem(nodes, steps), "") << "round " << round;
          EXPECT_EQ(overlapOrder(nodes, rule), steps);
          gained += secondsOf(nodes, steps) < secondsOf(nodes, plain);
        }
  }
  EXPECT_GT(gained, 20000);
}

TEST(OverlapOrder, NamesWhatIsWrong) {
  auto problem = [](Steps steps) { return overlapProblem(backward, steps); };
  EXPECT_EQ(problem({{0}, {1}, {2}, {3}}), "");
  EXPECT_EQ(problem({{0}, {1}, {2}, {1, true}, {3}}),
            "node 2 reads node 1 too early");
  EXPECT_EQ(problem({{1}, {0}, {2}, {3}}), "node 1 reads node 0 too early");
  EXPECT_EQ(problem({{0}, {1}, {2}}), "node 3 is missing");
  EXPECT_EQ(problem({{0}, {0}, {1}, {2}, {3}}), "node 0 is there twice");
  EXPECT_EQ(problem({{0}, {1}, {1, true}, {1, true}, {2}, {3}}),
            "node 1 is awaited twice");
  EXPECT_EQ(problem({{0}, {0, true}, {1}, {2}, {3}}),
            "node 0 is awaited, and nothing is under way");
}

} // namespace
