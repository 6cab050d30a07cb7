//===- SavedSetTest.cpp - Solvers against all sets ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Recompute/JointJson.h"
#include "passes/Recompute/PeakMoments.h"
#include "passes/Recompute/PeakRows.h"
#include "passes/Recompute/SolveCut.h"
#include "passes/Recompute/SolveExact.h"
#include "test/unit/JointFixture.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

using namespace accel;
using namespace accel::test;

namespace {

struct Instance {
  JointGraph graph;
  std::vector<double> seconds;
};

/// A random layered graph of `numOps` forward operations with views, second
/// results and operations that may not be repeated; each backward operation
/// reads a tangent and some forward values.
Instance randomInstance(unsigned seed, int numOps) {
  std::mt19937 random(seed);
  auto below = [&](int n) { return static_cast<int>(random() % n); };
  JointBuilder b;
  std::vector<int> values = {b.input(64 * (1 + below(8)))};
  values.push_back(b.param(64 * (1 + below(8))));
  std::vector<int> cost;
  for (int i = 0; i < numOps; ++i) {
    std::vector<int> operands;
    for (int k = 0, n = 1 + below(2); k < n; ++k)
      operands.push_back(values[std::max<int>(
          0, static_cast<int>(values.size()) - 1 - below(4))]);
    std::vector<int64_t> results = {64 * (1 + below(16))};
    if (below(4) == 0)
      results.push_back(64 * (1 + below(4)));
    int value = b.op(JointCategory::Pointwise, "aten::exp", operands, results);
    if (below(10) == 0)
      b.mayNotRepeat();
    for (size_t r = 0; r < results.size(); ++r)
      values.push_back(value + static_cast<int>(r));
    if (below(3) == 0)
      values.push_back(b.view(value));
  }
  b.output(values.back());
  int gradient = b.tangent(64 * (1 + below(8)));
  for (int i = 0, n = 2 + below(numOps); i < n; ++i) {
    std::vector<int> operands = {gradient, values[below(values.size())]};
    if (below(2))
      operands.push_back(values[below(values.size())]);
    gradient = b.op(JointCategory::Pointwise, "aten::mul.Tensor", operands,
                    {64 * (1 + below(16))});
    if (below(3) == 0)
      b.gradient(gradient, below(2));
  }
  b.gradient(gradient, false);
  Instance instance{b.finish(), {}};
  for (size_t i = 0; i < instance.graph.marks.size(); ++i)
    instance.seconds.push_back(
        instance.graph.marks[i].isView() ? 0 : 1e-6 * (1 + below(50)));
  return instance;
}

bool isAllowed(const SavedSetProblem &problem, const SavedSet &saved) {
  for (int op : splitGraph(problem.graph, saved).backward)
    if (problem.graph.marks[op].forward &&
        !problem.graph.marks[op].mayRecompute)
      return false;
  return true;
}

/// The least recomputation of all saved sets; negative where none fits.
/// `reorder` false counts the peak in the order of need alone.
double bruteForce(const SavedSetProblem &problem, bool reorder = true) {
  std::vector<int> choices;
  for (const auto &node : RecomputeModel(problem).nodes)
    choices.push_back(node.instruction);
  double best = -1;
  for (int bits = 0; bits < 1 << choices.size(); ++bits) {
    SavedSet saved(problem.graph.marks.size());
    for (size_t i = 0; i < choices.size(); ++i)
      saved[choices[i]] = bits >> i & 1;
    SavedSetSolution one = measureSavedSet(problem, saved);
    if (!reorder)
      one.feasible =
          one.bytes.saved <= problem.capBytes &&
          measureSplit(problem.graph, splitGraph(problem.graph, saved, false))
                  .backwardHeldPeak <= *problem.capBackwardPeak;
    if (one.feasible && isAllowed(problem, saved) &&
        (best < 0 || one.recomputeSeconds < best))
      best = one.recomputeSeconds;
  }
  return best;
}

class SavedSets : public testing::TestWithParam<int> {};

TEST_P(SavedSets, ExactIsTheBestOfAll) {
  Instance instance = randomInstance(GetParam(), 6 + GetParam() % 5);
  SavedSetProblem problem(instance.graph, instance.seconds);
  problem.capBytes = 1 << 30;
  const int64_t all =
      measureSavedSet(problem, savedByMode(instance.graph, "none")).bytes.saved;
  for (int part = 0; part <= 4; ++part) {
    problem.capBytes = all * part / 4;
    const double best = bruteForce(problem);
    const SavedSetSolution solution = solveExact(problem);
    ASSERT_EQ(solution.feasible, best >= 0) << "cap " << problem.capBytes;
    if (best < 0) {
      EXPECT_TRUE(solution.provenInfeasible);
      continue;
    }
    EXPECT_EQ(verifySavedSet(problem, solution), "");
    EXPECT_NEAR(solution.recomputeSeconds, best, 1e-12);
    EXPECT_LE(solution.gap(), 1e-9);
    const CutResult cuts =
        solveByCuts(RecomputeModel(problem), problem.capBytes);
    EXPECT_LE(cuts.boundSeconds, best + 1e-12);
    EXPECT_GE(cuts.seconds, best - 1e-12);
  }
}

/// The moments of the order of need, each a linear function of the set, have
/// the peak that a walk through that order counts.
TEST_P(SavedSets, MomentsCountAsTheWalk) {
  Instance instance = randomInstance(400 + GetParam(), 9);
  SavedSetProblem problem(instance.graph, instance.seconds);
  problem.capBytes = 1 << 30;
  const RecomputeModel model(problem);
  const PeakMoments moments(instance.graph, model);
  std::mt19937 random(GetParam());
  for (int i = 0; i < 40; ++i) {
    std::vector<bool> kept(model.storages.size());
    for (size_t s = 0; s < kept.size(); ++s)
      kept[s] = random() % 4 >= static_cast<unsigned>(i % 4);
    const SavedSet saved = model.savedSet(kept, instance.graph.marks.size());
    const int64_t peak =
        measureSplit(instance.graph, splitGraph(instance.graph, saved, false))
            .backwardHeldPeak;
    const std::vector<bool> real = model.kept(saved);
    EXPECT_TRUE(moments.fullest(real, peak, 1).empty()) << "above " << peak;
    const std::vector<PeakMoment> found = moments.fullest(real, peak - 1, 9);
    ASSERT_FALSE(found.empty()) << "set " << i;
    EXPECT_EQ(moments.bytes(found.front(), real), peak);
  }
}

/// Under a tight peak the answer is one that the verifier takes, with no gap
/// to the best of all sets in the order of need.
TEST_P(SavedSets, TheOrderOfNeedIsSolvedExactly) {
  Instance instance = randomInstance(500 + GetParam(), 4 + GetParam() % 4);
  SavedSetProblem problem(instance.graph, instance.seconds);
  problem.capBytes = 1 << 30;
  const SplitBytes all =
      measureSavedSet(problem, savedByMode(instance.graph, "none")).bytes;
  for (int share : {4, 2}) {
    problem.capBytes = all.saved * share / 4;
    for (int percent : {100, 95, 85, 75, 65}) {
      problem.capBackwardPeak = all.backwardHeldPeak * percent / 100;
      const double best = bruteForce(problem, false);
      const double anyOrder = bruteForce(problem);
      const SavedSetSolution solution = solveExact(problem);
      if (best < 0) {
        EXPECT_TRUE(solution.feasible || solution.provenInfeasible);
        continue;
      }
      ASSERT_TRUE(solution.feasible) << percent << " %";
      EXPECT_EQ(verifySavedSet(problem, solution), "");
      EXPECT_LE(solution.recomputeSeconds, best + 1e-12) << percent << " %";
      EXPECT_GE(solution.recomputeSeconds, anyOrder - 1e-12);
      EXPECT_LE(solution.gap(), 1e-9) << percent << " %";
      EXPECT_LE(solution.anyOrderBoundSeconds, anyOrder + 1e-12);
    }
  }
}

/// What holds in any order holds in the one that splitGraph finds.
TEST_P(SavedSets, PeakRowsAreABound) {
  Instance instance = randomInstance(200 + GetParam(), 8);
  SavedSetProblem problem(instance.graph, instance.seconds);
  problem.capBytes = 1 << 30;
  const RecomputeModel model(problem);
  const std::vector<PeakRow> rows = peakRows(instance.graph, model);
  ASSERT_FALSE(rows.empty());
  std::mt19937 random(GetParam());
  for (int i = 0; i < 30; ++i) {
    std::vector<bool> kept(model.storages.size());
    for (size_t s = 0; s < kept.size(); ++s)
      kept[s] = random() % 2;
    const SavedSet saved = model.savedSet(kept, instance.graph.marks.size());
    const int64_t peak = measureSavedSet(problem, saved).bytes.backwardHeldPeak;
    const std::vector<bool> real = model.kept(saved);
    for (const PeakRow &row : rows) {
      int64_t bytes = row.constant;
      for (int s : row.held)
        bytes += real[s] ? model.storages[s].bytes : 0;
      EXPECT_LE(bytes, peak);
    }
  }
}

TEST_P(SavedSets, TheModelCountsAsTheSplit) {
  Instance instance = randomInstance(300 + GetParam(), 10);
  SavedSetProblem problem(instance.graph, instance.seconds);
  problem.capBytes = 1 << 30;
  const RecomputeModel model(problem);
  std::mt19937 random(GetParam());
  for (int i = 0; i < 30; ++i) {
    std::vector<bool> kept(model.storages.size());
    for (size_t s = 0; s < kept.size(); ++s)
      kept[s] = random() % 3 > 0;
    const SavedSetSolution split = measureSavedSet(
        problem, model.savedSet(kept, instance.graph.marks.size()));
    EXPECT_EQ(model.savedBytes(kept), split.bytes.saved);
    EXPECT_NEAR(model.seconds(model.closure(kept)), split.recomputeSeconds,
                1e-12);
  }
}

INSTANTIATE_TEST_SUITE_P(Random, SavedSets, testing::Range(0, 12));

TEST(SavedSet, TheVerifierTrustsNobody) {
  Instance instance = randomInstance(5, 8);
  SavedSetProblem problem(instance.graph, instance.seconds);
  problem.capBytes = 1 << 30;
  const SavedSetSolution good = solveExact(problem);
  ASSERT_EQ(verifySavedSet(problem, good), "");
  auto wrong = [&](auto change, int64_t cap = 1 << 30) {
    SavedSetSolution bad = good;
    change(bad);
    problem.capBytes = cap;
    return verifySavedSet(problem, bad);
  };
  auto same = [](SavedSetSolution &) {};
  EXPECT_NE(wrong(same, good.bytes.saved - 1).find("bytes are saved"),
            std::string::npos);
  EXPECT_NE(wrong([](auto &s) { s.saved.pop_back(); }).find("another graph"),
            std::string::npos);
  EXPECT_NE(
      wrong([](auto &s) { s.recomputeSeconds += 1e-6; }).find("recomputation"),
      std::string::npos);
  EXPECT_NE(wrong([](auto &s) { s.boundSeconds += 1; }).find("bound"),
            std::string::npos);
  EXPECT_NE(wrong([](auto &s) { s.bytes.saved -= 64; }).find("bytes"),
            std::string::npos);
  EXPECT_NE(wrong([](auto &s) { s.feasible = false; }).find("no saved set"),
            std::string::npos);
  problem.capBackwardPeak = good.bytes.backwardHeldPeak - 1;
  EXPECT_NE(wrong(same).find("peak"), std::string::npos);
}

TEST(SavedSet, AnswersAreRemembered) {
  Instance instance = randomInstance(6, 10), copy = randomInstance(6, 10);
  SavedSetProblem problem(instance.graph, instance.seconds);
  SavedSetProblem again(copy.graph, copy.seconds);
  problem.capBytes = again.capBytes = 1024;
  const SavedSetSolution *first = &solveCached(problem);
  EXPECT_EQ(first, &solveCached(again)) << "the same content";
  again.capBytes = 2048;
  EXPECT_NE(first, &solveCached(again)) << "another cap";
  again.capBytes = 1024;
  again.seconds[0] += 1e-6;
  EXPECT_NE(first, &solveCached(again)) << "other seconds";
}

TEST(JointJson, ReadsBackWhatItWrites) {
  Instance instance = randomInstance(7, 12);
  const std::string text = toJson(instance.graph);
  ReadJoint read = readJoint(text);
  EXPECT_EQ(read.error, "");
  EXPECT_TRUE(read.seconds.empty());
  EXPECT_EQ(toJson(read.graph), text);
}

TEST(JointJson, MistakesAreNamed) {
  const std::string text = toJson(randomInstance(7, 3).graph);
  auto error = [&](const std::string &from, const std::string &to) {
    std::string changed = text;
    size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return readJoint(changed.replace(at, from.size(), to)).error;
  };
  EXPECT_EQ(error("\"forward\":true", "\"forward\":1"),
            "ops[0].forward: expected true or false, not 1");
  EXPECT_EQ(error("\"category\":\"pointwise\"", "\"category\":\"point\""),
            "ops[0].category: 'point' is no category");
  EXPECT_EQ(error("\"base\":0", "\"base\":77"),
            "slots[0].base: slot 77 is no slot of its own");
  EXPECT_EQ(error("\"inputs\":[0]", "\"inputs\":[900]"),
            "arguments: there is no slot 900");
  EXPECT_EQ(error("\"inputs\":[0]", "\"inputs\":[1]"),
            "arguments: slot 1 is made twice");
  EXPECT_EQ(error("\"overwrites\":false", "\"overwrites\":true"),
            "ops[0]: the forward overwrites what may be kept");
  EXPECT_NE(error("\"name\"", "\"nam\"").find("'name' is missing"),
            std::string::npos);
  EXPECT_NE(readJoint("[").error, "");
}

} // namespace
