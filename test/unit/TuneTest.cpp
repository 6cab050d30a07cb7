//===- TuneTest.cpp - The joint search against every setting --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Tune/Exact.h"
#include "passes/Tune/RecomputeFrontier.h"
#include "test/unit/TuneFixture.h"

#include <gtest/gtest.h>

#include <map>

using namespace accel;
using namespace accel::tune;

namespace {

/// A model of one or two micro-batch sizes on a random machine.
class Case {
public:
  Case(unsigned seed, int layers, int variants,
       const std::vector<Knob> &openKnobs) {
    std::mt19937 random(seed);
    machine.bytesPerSecond = 2e6 * (1 + random() % 20);
    machine.latencySeconds = 1e-4 * (random() % 10);
    bool split = false;
    for (Knob knob : openKnobs)
      split |= knob == Knob::Split || knob == Knob::Accumulation;
    space.splits = split ? std::vector<SplitOption>{{1, 2}, {2, 1}}
                         : std::vector<SplitOption>{{1, 1}};
    unsigned modelSeed = random();
    for (const SplitOption &s : space.splits) {
      std::mt19937 same(modelSeed);
      models.push_back(tinyModel(layers, variants, same, s.microBatch));
    }
    space.base = tinyCandidate(models[0], 4);
    space.base.accumulation = space.splits[0].accumulation;
    space.meshes = {space.base.mesh, space.base.mesh.sharded(2)};
    space.maxPrefetch = 2;
    space.lossChunks = {1, 4, 16};
    addModel(space, models[0], true, true);
    EXPECT_TRUE(locate(space, models[0]));
    for (Knob knob : openKnobs)
      space.state(knob).open = true;
    evaluate = [this](const Point &point) {
      const StepModel &model = models[point[Knob::Split]];
      return machine.evaluate(model, expand(space, model, point));
    };
    costOf = [this](int split, int group, int variant) {
      const LayerGroup &g = space.groups[group];
      const SegmentVariant &v =
          models[split].kinds[g.kind].variants[g.variants[variant]];
      return VariantCost{v.savedBytes, v.recomputeSeconds};
    };
  }

  SearchResult solve(int64_t budget, int64_t maxEvaluations = 3000,
                     ShareOut shareOut = {}) const {
    SearchOptions options;
    options.shareOut = std::move(shareOut);
    options.budgetBytes = budget;
    options.maxEvaluations = maxEvaluations;
    options.worthwhile = 0;
    options.enumerateUpTo = 0; // the search itself is tested
    return search(space, evaluate, costOf, options);
  }

  Space space;
  std::vector<StepModel> models;
  TinyMachine machine;
  Evaluate evaluate;
  CostOf costOf;
};

/// Searches at eight budgets between the smallest and the fastest point, and
/// compares with the enumeration of all points.
void compare(const std::vector<Knob> &knobs, int layers, int variants,
             int cases, double worstAllowed) {
  int same = 0, all = 0;
  double worst = 1;
  for (int seed = 0; seed < cases; ++seed) {
    Case c(seed, layers, variants, knobs);
    ASSERT_GT(countPoints(c.space, 1 << 20), 1);
    SearchResult exact = enumerate(c.space, c.evaluate, INT64_MAX);
    int64_t least = exact.front.front().evaluation.bytes;
    int64_t most = exact.front.back().evaluation.bytes;
    for (int i = 0; i <= 8; ++i) {
      int64_t budget = least + (most - least) * i / 8;
      SearchResult found = c.solve(budget);
      ASSERT_TRUE(found.best) << "seed " << seed << " budget " << budget;
      EXPECT_LE(found.best->evaluation.bytes, budget);
      EXPECT_EQ(c.space.problem(found.best->point), "");
      double optimum = 0;
      for (const Verdict &v : exact.front)
        if (v.evaluation.bytes <= budget)
          optimum = v.evaluation.seconds;
      double ratio = found.best->evaluation.seconds / optimum;
      EXPECT_GE(ratio, 1 - 1e-12) << "better than every point";
      EXPECT_LE(ratio, worstAllowed) << "seed " << seed << " budget " << i;
      worst = std::max(worst, ratio);
      same += ratio < 1 + 1e-9;
      ++all;
    }
    EXPECT_FALSE(c.solve(least - 1).best) << "nothing fits";
    EXPECT_GE(c.solve(least - 1).smallest.evaluation.bytes, least);
  }
  std::printf("  optimal in %d of %d, at worst %.3f %% slower\n", same, all,
              (worst - 1) * 100);
  EXPECT_GE(same, all * 95 / 100);
}

TEST(Search, CheckpointAlone) { compare({Knob::Checkpoint}, 8, 3, 20, 1.005); }
TEST(Search, CheckpointAndReshard) {
  compare({Knob::Checkpoint, Knob::Reshard}, 7, 3, 20, 1.005);
}
TEST(Search, FineKnobs) {
  compare({Knob::Checkpoint, Knob::Reshard, Knob::Wrap, Knob::ForwardPrefetch,
           Knob::BackwardPrefetch},
          5, 3, 12, 1.015);
}
TEST(Search, MeshMicroBatchAndAccumulation) {
  compare({Knob::Checkpoint, Knob::Reshard, Knob::Mesh, Knob::Split,
           Knob::Accumulation},
          4, 3, 12, 1.01);
}
TEST(Search, PartsOfTheLoss) {
  compare({Knob::Checkpoint, Knob::Reshard, Knob::Loss, Knob::Mesh}, 5, 3, 12,
          1.01);
}
TEST(Search, Offload) {
  compare({Knob::Checkpoint, Knob::Reshard, Knob::ParameterOffload,
           Knob::ActivationOffload, Knob::Wrap},
          5, 2, 12, 1.01);
}

TEST(Search, TheKnapsackIsAskedForTheRestOfTheBudget) {
  Case c(4, 6, 4, {Knob::Checkpoint, Knob::Reshard});
  const int64_t budget = c.evaluate(c.space.configured).bytes * 8 / 10;
  const SearchResult without = c.solve(budget);
  ASSERT_TRUE(without.best);
  // Whatever it answers, only what fits and is faster is taken.
  std::vector<int64_t> asked;
  const LayerGroup &layers = c.space.groups[1];
  ASSERT_TRUE(layers.layer);
  for (int variant = 0; variant < 4; ++variant) {
    const SearchResult with = c.solve(budget, 3000, [&](int, int64_t bytes) {
      asked.push_back(bytes);
      std::vector<int> counts = c.space.configured.counts;
      std::fill_n(counts.begin() + layers.offset, 4, 0);
      counts[layers.offset + variant] = static_cast<int>(layers.calls.size());
      return counts;
    });
    ASSERT_TRUE(with.best);
    EXPECT_LE(with.best->evaluation.bytes, budget);
    EXPECT_LE(with.best->evaluation.seconds, without.best->evaluation.seconds);
  }
  EXPECT_FALSE(asked.empty());
  // Without an answer the ladder's stays.
  const SearchResult none =
      c.solve(budget, 3000, [](int, int64_t) { return std::vector<int>(); });
  ASSERT_TRUE(none.best);
  EXPECT_EQ(none.best->point, without.best->point);
}

TEST(Search, FrontHoldsNothingDominated) {
  Case c(3, 6, 3, {Knob::Checkpoint, Knob::Reshard, Knob::Wrap});
  SearchResult exact = enumerate(c.space, c.evaluate, INT64_MAX);
  SearchResult found =
      c.solve(exact.front[exact.front.size() / 2].evaluation.bytes);
  ASSERT_GT(found.front.size(), 3u);
  for (size_t i = 1; i < found.front.size(); ++i) {
    EXPECT_GT(found.front[i].evaluation.bytes,
              found.front[i - 1].evaluation.bytes);
    EXPECT_LT(found.front[i].evaluation.seconds,
              found.front[i - 1].evaluation.seconds);
  }
  // At each of its bytes it is near the exact front.
  for (const Verdict &v : found.front) {
    double optimum = 0;
    for (const Verdict &e : exact.front)
      if (e.evaluation.bytes <= v.evaluation.bytes)
        optimum = e.evaluation.seconds;
    EXPECT_LE(v.evaluation.seconds, optimum * 1.10);
  }
}

TEST(Search, SameInputSameAnswer) {
  Case c(5, 5, 3, {Knob::Checkpoint, Knob::Reshard, Knob::Wrap, Knob::Mesh});
  int64_t budget = c.evaluate(c.space.configured).bytes;
  SearchResult a = c.solve(budget), b = c.solve(budget);
  ASSERT_TRUE(a.best && b.best);
  EXPECT_EQ(a.best->point, b.best->point);
  EXPECT_EQ(a.evaluations, b.evaluations);
}

TEST(Search, StopsAtItsLimitAndSaysSo) {
  Case c(5, 8, 4, {Knob::Checkpoint, Knob::Reshard, Knob::Wrap, Knob::Mesh});
  SearchResult r = c.solve(c.evaluate(c.space.configured).bytes, 20);
  EXPECT_LE(r.evaluations, 20);
  EXPECT_FALSE(r.complete);
  EXPECT_TRUE(r.configured.evaluation.possible);
}

TEST(Search, IsNoWorseThanItsStartsWhereItStops) {
  Case c(5, 8, 4, {Knob::Checkpoint, Knob::Reshard, Knob::Wrap, Knob::Mesh});
  const SearchResult exact = enumerate(c.space, c.evaluate, INT64_MAX);
  const Point hidden = exact.smallest.point; // the slowest of the front
  const Evaluate evaluate = [&](const Point &point) {
    Evaluation evaluation = c.evaluate(point);
    if (point == hidden)
      evaluation.seconds *= 0.01;
    return evaluation;
  };
  SearchOptions options;
  options.budgetBytes = INT64_MAX;
  options.maxEvaluations = 5;
  options.enumerateUpTo = 0;
  const SearchResult without = search(c.space, evaluate, c.costOf, options);
  ASSERT_TRUE(without.best);
  ASSERT_NE(without.best->point, hidden);
  options.starts = {hidden};
  const SearchResult with = search(c.space, evaluate, c.costOf, options);
  ASSERT_TRUE(with.best);
  EXPECT_EQ(with.best->point, hidden);
}

TEST(Search, NothingOpenGivesTheConfiguration) {
  Case c(1, 4, 3, {});
  SearchResult r = c.solve(INT64_MAX);
  ASSERT_TRUE(r.best);
  EXPECT_EQ(r.best->point, c.space.configured);
  EXPECT_EQ(r.evaluations, 1);
  EXPECT_FALSE(c.solve(1).best);
}

TEST(Search, WhereNothingCanRunTheSmallestIsTheConfiguration) {
  Case c(7, 4, 3, {Knob::Checkpoint, Knob::Mesh});
  const Evaluate impossible = [&](const Point &point) {
    Evaluation evaluation = c.evaluate(point);
    evaluation.possible = false;
    return evaluation;
  };
  for (int64_t enumerateUpTo : {1000, 10}) {
    SearchOptions options;
    options.budgetBytes = INT64_MAX;
    options.enumerateUpTo = enumerateUpTo;
    SearchResult r = search(c.space, impossible, c.costOf, options);
    EXPECT_FALSE(r.best);
    EXPECT_FALSE(r.smallest.evaluation.possible);
    EXPECT_EQ(r.smallest.point, c.space.configured);
    EXPECT_TRUE(r.front.empty());
  }
}

TEST(Search, SmallSpacesAreEnumerated) {
  Case c(7, 4, 3, {Knob::Checkpoint, Knob::Mesh});
  SearchOptions options;
  options.budgetBytes = c.evaluate(c.space.configured).bytes * 9 / 10;
  options.worthwhile = 0;
  SearchResult found = search(c.space, c.evaluate, c.costOf, options);
  SearchResult exact = enumerate(c.space, c.evaluate, options.budgetBytes);
  EXPECT_TRUE(found.exact);
  ASSERT_EQ(found.best.has_value(), exact.best.has_value());
  if (exact.best) {
    EXPECT_EQ(found.best->evaluation.seconds, exact.best->evaluation.seconds);
  }
  options.enumerateUpTo = 10;
  EXPECT_FALSE(search(c.space, c.evaluate, c.costOf, options).exact);
}

TEST(Search, ChangesNothingThatWinsNothing) {
  // An idle wire: prefetch, wrap and reshard make no difference.
  Case c(2, 4, 2, {Knob::Reshard, Knob::Wrap, Knob::ForwardPrefetch});
  c.machine.bytesPerSecond = 1e15;
  c.machine.latencySeconds = 0;
  SearchOptions options;
  options.budgetBytes = INT64_MAX;
  SearchResult r = search(c.space, c.evaluate, c.costOf, options);
  ASSERT_TRUE(r.best);
  EXPECT_EQ(r.best->point, c.space.configured);
}

TEST(RecomputeFrontier, FollowsTheLowerHull) {
  Case c(1, 3, 4, {Knob::Checkpoint});
  // Bytes against seconds: 100/0, 90/5 (above the hull), 40/6, 10/20.
  const VariantCost costs[] = {{100, 0}, {90, 5}, {40, 6}, {10, 20}};
  CostOf costOf = [&](int, int group, int variant) {
    return group == 1 ? costs[variant] : VariantCost{10, 1};
  };
  auto frontier = recomputeFrontier(c.space, 0, costOf);
  int offset = c.space.groups[1].offset;
  ASSERT_EQ(frontier.size(), 7u);
  for (const auto &step : frontier)
    EXPECT_EQ(step[offset + 1], 0) << "a variant above the hull";
  EXPECT_EQ(frontier[0][offset], 3);
  EXPECT_EQ(frontier[1][offset + 2], 1);
  EXPECT_EQ(frontier[6][offset + 3], 3);
}

} // namespace
