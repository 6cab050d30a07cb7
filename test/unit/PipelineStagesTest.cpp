//===- PipelineStagesTest.cpp - Cuts of a model into stages ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/PipelineSchedules/Schedule.h"
#include "passes/PipelineSchedules/Stages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

using namespace accel::pipeline;

namespace {

StageProblem problemOf(const std::vector<double> &seconds, int stages) {
  StageProblem problem;
  for (size_t i = 0; i < seconds.size(); ++i)
    problem.calls.push_back({"call " + std::to_string(i), seconds[i], 10, 2});
  problem.stages.resize(stages);
  return problem;
}

/// The oracle: every cut, by (slowest, sum of squares).
std::pair<double, double> bestOfAll(const StageProblem &problem,
                                    std::vector<int> begins = {0}) {
  std::pair<double, double> best = {1e30, 1e30};
  const int calls = static_cast<int>(problem.calls.size());
  if (begins.size() < problem.stages.size()) {
    for (int next = begins.back() + 1; next < calls; ++next) {
      begins.push_back(next);
      best = std::min(best, bestOfAll(problem, begins));
      begins.pop_back();
    }
    return best;
  }
  std::pair<double, double> cost = {0, 0};
  begins.push_back(calls);
  for (size_t stage = 0; stage < problem.stages.size(); ++stage) {
    double seconds = 0;
    int64_t bytes = 0;
    for (int call = begins[stage]; call < begins[stage + 1]; ++call) {
      const Call &of = problem.calls[call];
      seconds += of.seconds;
      bytes += of.heldBytes + problem.stages[stage].frames * of.perFrameBytes;
    }
    if (bytes > problem.stages[stage].bytes)
      return best;
    cost.first = std::max(cost.first, seconds);
    cost.second += seconds * seconds;
  }
  return cost;
}

TEST(PipelineStages, AsGoodAsTheBestOfAllCuts) {
  std::mt19937 random(11);
  int fits = 0, none = 0;
  for (int round = 0; round < 400; ++round) {
    const int calls = 2 + static_cast<int>(random() % 8);
    StageProblem problem;
    for (int i = 0; i < calls; ++i)
      problem.calls.push_back({"c", double(1 + random() % 9),
                               int64_t(random() % 20), int64_t(random() % 5)});
    problem.stages.resize(1 + random() % std::min(calls, 5));
    for (size_t s = 0; s < problem.stages.size(); ++s)
      problem.stages[s] = {static_cast<int>(problem.stages.size() - s),
                           int64_t(20 + random() % 60)};
    const StageCut cut = cutStages(problem);
    const auto [slowest, squares] = bestOfAll(problem);
    if (slowest > 1e29) {
      EXPECT_NE(cut.problem, "");
      ++none;
      continue;
    }
    ++fits;
    ASSERT_EQ(cut.problem, "");
    EXPECT_EQ(verify(problem, cut), "");
    EXPECT_DOUBLE_EQ(cut.seconds, slowest);
    double sum = 0;
    for (size_t s = 0; s < cut.begins.size(); ++s) {
      double seconds = 0;
      const int end = s + 1 < cut.begins.size() ? cut.begins[s + 1] : calls;
      for (int call = cut.begins[s]; call < end; ++call)
        seconds += problem.calls[call].seconds;
      sum += seconds * seconds;
    }
    EXPECT_DOUBLE_EQ(sum, squares);
  }
  EXPECT_GT(fits, 100);
  EXPECT_GT(none, 50);
}

// A head as slow as two blocks leaves its stage fewer of them.
TEST(PipelineStages, AHeadIsCounted) {
  const StageProblem problem = problemOf({0.1, 1, 1, 1, 1, 1, 1, 1, 1, 2}, 4);
  const StageCut cut = cutStages(problem);
  EXPECT_EQ(cut.problem, "");
  EXPECT_EQ(verify(problem, cut), "");
  EXPECT_DOUBLE_EQ(cut.seconds, 3);
  EXPECT_EQ(cut.begins.back(), 8);
}

// Eight stages of four ranks in a V: two blocks in a stage are the pace, and
// each rank has three.
TEST(PipelineStages, RanksOfSeveralStagesAreAlike) {
  StageProblem problem = problemOf(std::vector<double>(12, 1.0), 8);
  problem.ranks = {0, 1, 2, 3, 3, 2, 1, 0};
  const StageCut cut = cutStages(problem);
  EXPECT_EQ(verify(problem, cut), "");
  EXPECT_DOUBLE_EQ(cut.seconds, 2);
  std::vector<int> calls(4);
  for (int stage = 0; stage < 8; ++stage)
    calls[problem.ranks[stage]] +=
        (stage < 7 ? cut.begins[stage + 1] : 12) - cut.begins[stage];
  EXPECT_EQ(calls, std::vector<int>(4, 3));
}

/// The oracle for ranks of several stages: some cut fits each rank.
bool fitsSomehow(const StageProblem &problem, std::vector<int> begins = {0}) {
  const int calls = static_cast<int>(problem.calls.size());
  if (begins.size() < problem.stages.size()) {
    for (int next = begins.back() + 1; next < calls; ++next) {
      begins.push_back(next);
      if (fitsSomehow(problem, begins))
        return true;
      begins.pop_back();
    }
    return false;
  }
  begins.push_back(calls);
  for (size_t rank = 0; rank < problem.moments.size(); ++rank)
    for (const std::vector<int> &moment : problem.moments[rank]) {
      int64_t bytes = 0;
      for (size_t stage = 0; stage < problem.stages.size(); ++stage)
        for (int call = begins[stage]; call < begins[stage + 1]; ++call)
          if (problem.ranks[stage] == static_cast<int>(rank))
            bytes += problem.calls[call].heldBytes +
                     moment[stage] * problem.calls[call].perFrameBytes;
      if (bytes > problem.stages[rank].bytes)
        return false;
    }
  return true;
}

// What a rank's stages hold together fits the rank, by every schedule that
// gives it several.
TEST(PipelineStages, RanksOfSeveralStagesFitTheirMemory) {
  std::mt19937 random(5);
  int fits = 0, none = 0, missed = 0;
  for (int round = 0; round < 300; ++round) {
    const bool returns = random() % 2;
    Problem schedule{returns ? Kind::ZbV : Kind::Interleaved, 4, 2, 4};
    StageProblem problem;
    const int calls = 5 + static_cast<int>(random() % 6);
    for (int i = 0; i < calls; ++i)
      problem.calls.push_back({"c", double(1 + random() % 9),
                               int64_t(random() % 20), int64_t(random() % 8)});
    const Schedule order = makeSchedule(schedule);
    problem.moments = momentsOf(schedule, order);
    const int64_t bytes = 30 + random() % 160;
    for (int stage = 0; stage < 4; ++stage) {
      problem.stages.push_back({order.frames[stage], bytes});
      problem.ranks.push_back(schedule.rankOf(stage));
    }
    const StageCut cut = cutStages(problem);
    if (!fitsSomehow(problem)) {
      EXPECT_NE(cut.problem, "");
      ++none;
    } else if (cut.problem.empty()) {
      EXPECT_EQ(verify(problem, cut), "");
      ++fits;
    } else {
      ++missed;
    }
  }
  EXPECT_GT(fits, 100);
  EXPECT_GT(none, 30);
  EXPECT_EQ(missed, 0);
}

// A rank's moments have frames of its own stages alone, by zb-v 2 p of them at
// most.
TEST(PipelineStages, MomentsOfARank) {
  const Problem problem{Kind::ZbV, 4, 2, 3};
  const auto moments = momentsOf(problem, makeSchedule(problem));
  ASSERT_EQ(moments.size(), 2U);
  for (size_t rank = 0; rank < 2; ++rank)
    for (const std::vector<int> &moment : moments[rank])
      for (int stage = 0; stage < 4; ++stage)
        if (problem.rankOf(stage) != static_cast<int>(rank))
          EXPECT_EQ(moment[stage], 0);
  for (const auto &rank : moments)
    for (const std::vector<int> &moment : rank)
      EXPECT_LE(moment[0] + moment[1] + moment[2] + moment[3], 4);
}

// 1F1B's first stage has more frames than its last, and so fewer blocks.
TEST(PipelineStages, MemoryMovesTheCut) {
  StageProblem problem = problemOf({1, 1, 1, 1, 1, 1}, 2);
  EXPECT_EQ(cutStages(problem).begins, (std::vector<int>{0, 3}));
  problem.stages = {{6, 50}, {1, 50}}; // 22 a block, then 12
  EXPECT_EQ(cutStages(problem).begins, (std::vector<int>{0, 2}));
}

TEST(PipelineStages, TheUsersCutWins) {
  StageProblem problem = problemOf({1, 1, 1, 1}, 2);
  problem.begins = {0, 1};
  const StageCut cut = cutStages(problem);
  EXPECT_EQ(cut.problem, "");
  EXPECT_EQ(cut.begins, (std::vector<int>{0, 1}));
  EXPECT_DOUBLE_EQ(cut.seconds, 3);
  const auto problemOfCut = [&](std::vector<int> begins) {
    problem.begins = std::move(begins);
    return cutStages(problem).problem;
  };
  EXPECT_EQ(problemOfCut({0, 1, 2}), "expected 2 stages, got 3");
  EXPECT_EQ(problemOfCut({1, 2}), "stage 0 begins with call 1, expected 0");
  EXPECT_EQ(problemOfCut({0, 0}), "stage 0 has no call: the next begins with "
                                  "call 0, expected one above 0");
  EXPECT_EQ(problemOfCut({0, 4}),
            "stage 1 begins with call 4, expected one below 4");
  EXPECT_EQ(problemOfCut({0, 9}), "stage 0 begins with call 0, expected one "
                                  "below 4");
  EXPECT_EQ(problemOfCut({0, -3}), "stage 0 has no call: the next begins with "
                                   "call -3, expected one above 0");
  problem.stages[1].bytes = 30;
  EXPECT_EQ(problemOfCut({0, 1}), "stage 1 ('call 1' to 'call 3') holds 36 "
                                  "bytes, it has 30");
}

TEST(PipelineStages, WhyThereIsNone) {
  StageProblem problem = problemOf({1, 1}, 3);
  EXPECT_EQ(cutStages(problem).problem,
            "2 calls make at most 2 stages, this is 3");
  problem = problemOf({1, 1, 1}, 2);
  problem.stages.assign(2, {1, 20});
  EXPECT_EQ(cutStages(problem).problem,
            "no cut into 2 stages keeps each within its bytes");
  problem.stages.assign(2, {1, 11});
  EXPECT_EQ(cutStages(problem).problem,
            "'call 0' alone is 1 bytes above what any stage has");
  StageCut wrong = {{0, 1}, 7, ""};
  problem.stages.assign(2, {1, 100});
  EXPECT_EQ(verify(problem, wrong),
            "the slowest stage takes 2.000000 s, not 7.000000");
}

} // namespace
