//===- PipelineScheduleTest.cpp - Orders, verifier and simulator ----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/PipelineSchedules/Simulate.h"
#include "passes/PipelineSchedules/Verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

using namespace accel::pipeline;

namespace {

Costs uniform(int stages, double forward, double input, double weight) {
  StageCost cost;
  cost.forward = forward;
  cost.backwardInput = input;
  cost.backwardWeight = weight;
  Costs costs;
  costs.stages.assign(stages, cost);
  return costs;
}

Simulation priced(const Problem &problem, const Costs &costs) {
  const Schedule schedule = makeSchedule(problem);
  EXPECT_EQ(verify(problem, schedule), "");
  std::optional<Simulation> result = simulate(problem, schedule, costs);
  EXPECT_TRUE(result.has_value());
  return result.value_or(Simulation());
}

/// All problems of a kind up to 6 ranks, 3 chunks and 14 micro-batches.
template <typename Function> int forAll(Kind kind, Function function) {
  int count = 0;
  for (int ranks = 1; ranks <= 6; ++ranks)
    for (int chunks = 1; chunks <= 3; ++chunks)
      for (int microBatches = 1; microBatches <= 14; ++microBatches) {
        const Problem problem = {kind, ranks * chunks, chunks, microBatches};
        if (!check(problem).empty())
          continue;
        function(problem);
        ++count;
      }
  return count;
}

TEST(PipelineSchedule, EveryKindExecutes) {
  int count = 0;
  for (const KindDescription &kind : kinds())
    count += forAll(kind.kind, [](const Problem &problem) {
      EXPECT_EQ(verify(problem, makeSchedule(problem)), "")
          << describe(problem.kind).name << " " << problem.stages << " "
          << problem.microBatches;
    });
  EXPECT_GT(count, 400);
}

// Rank by rank, with sends that block: these need no buffers.
TEST(PipelineSchedule, OneChunkNeedsNoBuffers) {
  for (Kind kind : {Kind::GPipe, Kind::OneFOneB, Kind::ZbH1})
    forAll(kind, [](const Problem &problem) {
      if (problem.chunks == 1) {
        EXPECT_EQ(verify(problem, makeSchedule(problem), Messages::Blocking),
                  "")
            << problem.stages << " " << problem.microBatches;
      }
    });
}

// Huang et al. 2019, section 2.3, and Narayanan et al. 2021, section 2.2.1:
// (p - 1)(f + b) of bubble beside m (f + b) of work, for both.
TEST(PipelineSchedule, BubbleOfOneChunk) {
  for (Kind kind : {Kind::GPipe, Kind::OneFOneB})
    forAll(kind, [](const Problem &problem) {
      const int p = problem.stages, m = problem.microBatches;
      const Simulation run = priced(problem, uniform(p, 2, 3, 1));
      EXPECT_DOUBLE_EQ(run.makespan, (m + p - 1) * 6);
      for (const RankTotals &rank : run.totals) {
        EXPECT_DOUBLE_EQ(rank.busy, m * 6);
        EXPECT_DOUBLE_EQ(rank.bubble / rank.busy, (p - 1.0) / m);
      }
      EXPECT_DOUBLE_EQ(run.bubbleShare(), (p - 1.0) / (m + p - 1));
    });
}

// Narayanan et al. 2021, section 2.2.2: a v-th of it, where rounds divide.
TEST(PipelineSchedule, BubbleOfSeveralChunks) {
  int held = 0;
  forAll(Kind::Interleaved, [&](const Problem &problem) {
    const int p = problem.ranks(), v = problem.chunks;
    if (problem.microBatches % p != 0)
      return;
    ++held;
    const Simulation run = priced(problem, uniform(problem.stages, 2, 3, 1));
    for (const RankTotals &rank : run.totals)
      EXPECT_DOUBLE_EQ(rank.bubble / rank.busy,
                       (p - 1.0) / (v * problem.microBatches));
  });
  EXPECT_GT(held, 20);
}

/// Qi et al. measure from a rank's first action to its last.
double longestGaps(const Simulation &run) {
  double gaps = 0;
  for (const RankTotals &rank : run.totals)
    gaps = std::max(gaps, rank.gaps);
  return gaps;
}

// Qi et al. 2024, table 2: (p - 1)(F + B - W) of bubble for ZB-H1, as long as W
// is no longer than what it fills.
TEST(PipelineSchedule, BubbleOfZbH1) {
  for (int p = 2; p <= 6; ++p)
    for (int m = 2 * p; m <= 3 * p; ++m) {
      const Problem problem = {Kind::ZbH1, p, 1, m};
      for (auto [f, b, w] : {std::tuple(1.0, 1.0, 1.0), {4.0, 4.0, 2.0}}) {
        const Simulation run = priced(problem, uniform(p, f, b, w));
        EXPECT_DOUBLE_EQ(longestGaps(run), (p - 1) * (f + b - w));
        EXPECT_LT(run.makespan, (m + p - 1) * (f + b + w));
      }
    }
}

// No bubble where the three parts take the same, from 2 p - 1 micro-batches on.
TEST(PipelineSchedule, ZbVHasNoBubble) {
  for (int p = 1; p <= 6; ++p)
    for (int m = 2 * p; m <= 3 * p; ++m) {
      const Problem problem = {Kind::ZbV, 2 * p, 2, m};
      const Simulation run = priced(problem, uniform(2 * p, 1, 1, 1));
      EXPECT_DOUBLE_EQ(longestGaps(run), 0) << p << " " << m;
      EXPECT_DOUBLE_EQ(run.makespan, 6 * m + p - 1);
    }
}

TEST(PipelineSchedule, FramesInFlight) {
  forAll(Kind::GPipe, [](const Problem &problem) {
    EXPECT_EQ(makeSchedule(problem).frames,
              std::vector<int>(problem.stages, problem.microBatches));
  });
  // Narayanan et al. 2021: at most p, one fewer on each rank.
  forAll(Kind::OneFOneB, [](const Problem &problem) {
    const Schedule schedule = makeSchedule(problem);
    for (int s = 0; s < problem.stages; ++s)
      EXPECT_EQ(schedule.frames[s],
                std::min(problem.stages - s, problem.microBatches));
  });
  // Qi et al.: ZB-H1 has no more than 1F1B's first rank.
  forAll(Kind::ZbH1, [](const Problem &problem) {
    if (problem.chunks == 1) {
      for (int frames : makeSchedule(problem).frames)
        EXPECT_LE(frames, std::min(problem.stages, problem.microBatches));
    }
  });
  // ZB-V: each rank as much as 1F1B's first, whose stages are twice as large.
  forAll(Kind::ZbV, [](const Problem &problem) {
    const Schedule schedule = makeSchedule(problem);
    Costs costs = uniform(problem.stages, 1, 1, 1);
    for (StageCost &cost : costs.stages)
      cost.frameBytes = 1;
    const auto run = simulate(problem, schedule, costs);
    ASSERT_TRUE(run.has_value());
    for (const RankTotals &rank : run->totals)
      EXPECT_LE(rank.peakBytes,
                std::min(2 * problem.ranks(), 2 * problem.microBatches));
  });
}

TEST(PipelineSchedule, TransfersDelayWhatReadsThem) {
  // Two ranks, one micro-batch: forward, over, forward, backward, back.
  Costs costs = uniform(2, 1, 2, 1);
  costs.transfer = 0.5;
  const Simulation run = priced({Kind::OneFOneB, 2, 1, 1}, costs);
  EXPECT_DOUBLE_EQ(run.makespan, 1 + 0.5 + 1 + 3 + 0.5 + 3);
  EXPECT_DOUBLE_EQ(run.ranks[1][0].start, 1.5);
  // The V's turn is on one rank and costs nothing.
  const Simulation turn = priced({Kind::ZbV, 2, 2, 1}, costs);
  EXPECT_DOUBLE_EQ(turn.makespan, 2 * (1 + 2 + 1));
}

TEST(PipelineSchedule, BytesOfSplitBackward) {
  // One stage, two micro-batches: the frame is 10 bytes, 4 of which the
  // weights' part does not read; it reads 3 more.
  const Problem problem = {Kind::ZbH1, 1, 1, 2};
  Costs costs = uniform(1, 1, 1, 1);
  costs.stages[0].frameBytes = 10;
  costs.stages[0].inputOnlyBytes = 4;
  costs.stages[0].weightOnlyBytes = 3;
  const auto run = [&](std::vector<Action> order) {
    Schedule schedule = {{std::move(order)}, {2}};
    EXPECT_EQ(verify(problem, schedule), "");
    return simulate(problem, schedule, costs)->totals[0].peakBytes;
  };
  using enum Pass;
  EXPECT_EQ(run({{0, 0, Forward},
                 {0, 0, Backward},
                 {0, 1, Forward},
                 {0, 1, Backward}}),
            10);
  EXPECT_EQ(run({{0, 0, Forward},
                 {0, 0, BackwardInput},
                 {0, 0, BackwardWeight},
                 {0, 1, Forward},
                 {0, 1, Backward}}),
            13);
  // 10 - 4 + 3 wait while the second has its own 13.
  EXPECT_EQ(run({{0, 0, Forward},
                 {0, 0, BackwardInput},
                 {0, 1, Forward},
                 {0, 1, BackwardInput},
                 {0, 0, BackwardWeight},
                 {0, 1, BackwardWeight}}),
            22);
}

TEST(PipelineSchedule, VerifierNamesTheFault) {
  const Problem problem = {Kind::OneFOneB, 2, 1, 2};
  const Schedule good = makeSchedule(problem);
  ASSERT_EQ(verify(problem, good), "");
  Schedule bad = good;
  bad.ranks.pop_back();
  EXPECT_EQ(verify(problem, bad), "expected orders of 2 ranks, got 1");
  bad = good;
  bad.ranks[1].pop_back();
  EXPECT_EQ(verify(problem, bad), "backward-input of stage 1, micro-batch 1 on "
                                  "rank 1 is missing");
  bad = good;
  bad.ranks[0].push_back(bad.ranks[0][0]);
  EXPECT_EQ(verify(problem, bad),
            "forward of stage 0, micro-batch 0 on rank 0: "
            "it was computed before");
  bad = good;
  bad.ranks[0].push_back({0, 1, Pass::BackwardWeight});
  EXPECT_EQ(verify(problem, bad),
            "backward-weight of stage 0, micro-batch 1 on "
            "rank 0: it was computed before");
  bad = good;
  std::swap(bad.ranks[0][0], bad.ranks[1][0]);
  EXPECT_EQ(verify(problem, bad),
            "forward of stage 1, micro-batch 0 on rank 0: "
            "the stage is on rank 1");
  bad = good;
  bad.ranks[0][0].microBatch = 2;
  EXPECT_EQ(
      verify(problem, bad),
      "forward of stage 0, micro-batch 2 on rank 0: expected stages below "
      "2 and micro-batches below 2");
  bad = good;
  std::swap(bad.ranks[1][0], bad.ranks[1][1]);
  EXPECT_EQ(verify(problem, bad),
            "backward of stage 1, micro-batch 0 on rank 1: "
            "it reads its forward, which is later");
  bad = good;
  bad.frames[0] = 1;
  EXPECT_EQ(verify(problem, bad),
            "stage 0 has 2 micro-batches in flight, declared are 1");
  bad.frames.pop_back();
  EXPECT_EQ(verify(problem, bad), "expected frames of 2 stages, got 1");
  // Rank 0 wants a gradient before it sends what makes it.
  bad = good;
  bad.ranks[0] = {{0, 0, Pass::Forward},
                  {0, 0, Pass::Backward},
                  {0, 1, Pass::Forward},
                  {0, 1, Pass::Backward}};
  bad.ranks[1] = {{1, 0, Pass::Forward},
                  {1, 1, Pass::Forward},
                  {1, 0, Pass::Backward},
                  {1, 1, Pass::Backward}};
  bad.frames = {1, 2};
  EXPECT_EQ(verify(problem, bad),
            "ranks wait for each other: rank 0 in backward of stage 0, "
            "micro-batch 0 for rank 1, which waits in forward of stage 1, "
            "micro-batch 1");
  EXPECT_FALSE(simulate(problem, bad, uniform(2, 1, 1, 1)).has_value());
}

/// Nodes that reach themselves (Warshall's closure).
bool hasCycle(std::vector<std::vector<bool>> edges) {
  const size_t n = edges.size();
  for (size_t k = 0; k < n; ++k)
    for (size_t i = 0; i < n; ++i)
      if (edges[i][k])
        for (size_t j = 0; j < n; ++j)
          if (edges[k][j])
            edges[i][j] = true;
  for (size_t i = 0; i < n; ++i)
    if (edges[i][i])
      return true;
  return false;
}

/// Whether `a` reads what `b` makes, by the definition of backpropagation.
bool reads(const Action &a, const Action &b) {
  if (a.microBatch != b.microBatch)
    return false;
  const bool givesGradient =
      b.pass == Pass::Backward || b.pass == Pass::BackwardInput;
  switch (a.pass) {
  case Pass::Forward:
    return b.pass == Pass::Forward && b.stage == a.stage - 1;
  case Pass::Backward:
  case Pass::BackwardInput:
    return (b.pass == Pass::Forward && b.stage == a.stage) ||
           (givesGradient && b.stage == a.stage + 1);
  case Pass::BackwardWeight:
    return b.pass == Pass::BackwardInput && b.stage == a.stage;
  }
  return false;
}

/// The oracle: the orders of ranks and what is read form no cycle.
bool executes(const Schedule &schedule) {
  std::vector<std::pair<int, Action>> all;
  for (size_t rank = 0; rank < schedule.ranks.size(); ++rank)
    for (const Action &action : schedule.ranks[rank])
      all.push_back({static_cast<int>(rank), action});
  std::vector<std::vector<bool>> edges(all.size(),
                                       std::vector<bool>(all.size(), false));
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t j = 0; j < all.size(); ++j)
      edges[i][j] = (i < j && all[i].first == all[j].first) ||
                    reads(all[j].second, all[i].second);
  return !hasCycle(edges);
}

/// The same where sends block: batches are posted behind actions and end
/// behind the posts of those that they exchange with.
bool executesBlocking(const Schedule &schedule) {
  struct Batch {
    int rank;
    std::optional<Action> before, behind;
  };
  std::vector<Batch> batches;
  for (size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const std::vector<Action> &order = schedule.ranks[rank];
    for (size_t at = 0; at <= order.size(); ++at) {
      Batch batch = {static_cast<int>(rank), {}, {}};
      if (at > 0)
        batch.before = order[at - 1];
      if (at < order.size())
        batch.behind = order[at];
      batches.push_back(batch);
    }
  }
  const size_t n = batches.size();
  // Node i: batch i is posted; n + i: it ends.
  std::vector<std::vector<bool>> edges(2 * n, std::vector<bool>(2 * n, false));
  for (size_t i = 0; i < n; ++i) {
    edges[i][n + i] = true;
    if (i + 1 < n && batches[i].rank == batches[i + 1].rank)
      edges[n + i][i + 1] = true;
    for (size_t j = 0; j < n; ++j)
      if (batches[i].before && batches[j].behind &&
          batches[i].rank != batches[j].rank &&
          batches[i].before->stage != batches[j].behind->stage &&
          reads(*batches[j].behind, *batches[i].before))
        edges[i][n + j] = edges[j][n + i] = true;
  }
  return !hasCycle(edges) && executes(schedule);
}

// Every pair of orders of two ranks with two micro-batches.
TEST(PipelineSchedule, VerifierAcceptsWhatExecutes) {
  const Problem problem = {Kind::OneFOneB, 2, 1, 2};
  const auto ofRank = [](int rank) {
    return std::vector<Action>{{rank, 0, Pass::Forward},
                               {rank, 0, Pass::Backward},
                               {rank, 1, Pass::Forward},
                               {rank, 1, Pass::Backward}};
  };
  int good = 0, blocking = 0, all = 0;
  std::vector<int> a = {0, 1, 2, 3}, b = a;
  do
    do {
      Schedule schedule = {{{}, {}}, {2, 2}};
      for (int i = 0; i < 4; ++i) {
        schedule.ranks[0].push_back(ofRank(0)[a[i]]);
        schedule.ranks[1].push_back(ofRank(1)[b[i]]);
      }
      const bool expected = executes(schedule);
      EXPECT_EQ(verify(problem, schedule).empty(), expected);
      const bool expectedBlocking = executesBlocking(schedule);
      EXPECT_EQ(verify(problem, schedule, Messages::Blocking).empty(),
                expectedBlocking);
      good += expected;
      blocking += expectedBlocking;
      ++all;
    } while (std::next_permutation(b.begin(), b.end()));
  while (std::next_permutation(a.begin(), a.end()));
  EXPECT_EQ(all, 576);
  EXPECT_GT(good, blocking);
  EXPECT_GT(blocking, 2);
}

// Schedules of all kinds with a few actions moved.
TEST(PipelineSchedule, VerifierAcceptsWhatExecutesOfMoreRanks) {
  std::mt19937 random(7);
  const auto below = [&](size_t n) { return random() % n; };
  int good = 0, bad = 0, blocked = 0;
  for (int round = 0; round < 600; ++round) {
    const KindDescription &kind = kinds()[below(kinds().size())];
    const int ranks = 2 + static_cast<int>(below(2));
    const Problem problem = {kind.kind, ranks * kind.chunks, kind.chunks, 3};
    ASSERT_EQ(check(problem), "");
    Schedule schedule = makeSchedule(problem);
    schedule.frames.assign(problem.stages, problem.microBatches);
    for (size_t moves = below(4); moves > 0; --moves) {
      std::vector<Action> &order = schedule.ranks[below(ranks)];
      const size_t at = below(order.size() - 1);
      const size_t to = std::min(at + 1 + below(2), order.size() - 1);
      std::swap(order[at], order[to]);
    }
    const bool expected = executes(schedule);
    EXPECT_EQ(verify(problem, schedule).empty(), expected);
    const bool blocking = executesBlocking(schedule);
    EXPECT_EQ(verify(problem, schedule, Messages::Blocking).empty(), blocking);
    if (expected) {
      EXPECT_TRUE(simulate(problem, schedule, uniform(problem.stages, 1, 1, 1))
                      .has_value());
    }
    (expected ? good : bad)++;
    blocked += expected && !blocking;
  }
  EXPECT_GT(good, 100);
  EXPECT_GT(bad, 100);
  EXPECT_GT(blocked, 5);
}

TEST(PipelineSchedule, NumbersThatFit) {
  EXPECT_EQ(check({Kind::GPipe, 4, 2, 8}),
            "gpipe has one stage on each rank, this is 2; interleaved-1f1b "
            "takes several");
  EXPECT_EQ(check({Kind::Interleaved, 4, 1, 8}),
            "interleaved-1f1b has at least 2 stages on each rank, this is 1; "
            "1f1b takes one");
  EXPECT_EQ(check({Kind::ZbV, 6, 3, 8}),
            "zb-v has 2 stages on each rank, this is 3");
  EXPECT_EQ(
      check({Kind::ZbV, 5, 2, 8}),
      "zb-v with 2 stages on each rank takes a multiple of 2 stages, this "
      "is 5; 4 or 6 fit");
  EXPECT_EQ(check({Kind::Interleaved, 8, 2, 9}),
            "interleaved-1f1b deals micro-batches in 2 rounds of one size on 4 "
            "ranks, and 9 do not divide; 8 or 10 fit");
  EXPECT_EQ(check({Kind::OneFOneB, 1 << 20, 1, 2}),
            "1048576 stages times 2 micro-batches are above 1048576 forwards; "
            "at most 1 fits");
  EXPECT_EQ(check({Kind::OneFOneB, 0, 1, 2}),
            "stages, chunks and micro-batches are positive integers");
}

} // namespace
