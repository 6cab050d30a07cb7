//===- MeshSearchTest.cpp - Searched meshes against all meshes ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Tune/MeshSearch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace accel::tune {
namespace {

/// A machine that is no better than the bounds say: efficiencies that fall with
/// what is left to compute, a pipeline that is played micro-batch by
/// micro-batch, and all that a stage holds.
class Machine {
public:
  Machine(const MeshProblem &problem, std::mt19937 &random)
      : problem(problem), loss(1 + 0.1 * static_cast<double>(random() % 5)) {}

  double layer(const MeshSizes &mesh) const {
    const auto sharing = static_cast<double>(mesh.tensor * mesh.context);
    double each = problem.layer.seconds * loss *
                  (1 + 0.01 * static_cast<double>(mesh.tensor)) / sharing;
    if (mesh.tensor > 1)
      each += 5 * problem.addUp(mesh.tensor,
                                std::min(mesh.tensor, problem.ranksPerNode),
                                problem.layer.inputBytes /
                                    static_cast<double>(mesh.context));
    const int64_t near = std::clamp<int64_t>(problem.ranksPerNode / mesh.tensor,
                                             1, mesh.context);
    if (mesh.context > 1 && !problem.pass)
      each += 3 * problem.gather(mesh.context, near,
                                 problem.layer.keyBytes /
                                     static_cast<double>(mesh.tensor));
    if (mesh.context > 1)
      each += 1.1 * static_cast<double>(mesh.context) * problem.blockSeconds;
    // Of both halves, rank after rank; gradients of keys come back.
    const AttentionSeconds attention = problem.attention(mesh.context);
    for (const double half : {attention.forward, attention.backward})
      for (int64_t rank = 0; rank < mesh.context; ++rank) {
        const double own =
            half * loss / sharing / static_cast<double>(mesh.context);
        const double sent =
            problem.pass && rank > 0
                ? problem.pass(mesh.context, near,
                               problem.layer.keyBytes / sharing) *
                      (half == attention.forward ? 1 : 2)
                : 0;
        each += own + sent - problem.overlap * std::min(own, sent);
      }
    return each;
  }

  /// Keeping all, or computing a layer again.
  Evaluation evaluate(const MeshSizes &mesh, bool again) const {
    const int64_t stages = mesh.stages, count = problem.accumulationOf(mesh);
    const LayersOfStages own = *layersOfStages(problem, stages);
    std::vector<int64_t> layers(stages, own.other);
    layers.back() = own.last;
    const double each = layer(mesh) * (again ? 1.3 : 1);
    // Forward and backward as one pass over the stages and back.
    std::vector<double> end(stages, 0);
    for (int64_t m = 0; m < count; ++m)
      for (int64_t s = 0; s < stages; ++s) {
        const double before = s ? end[s - 1] : 0;
        end[s] =
            std::max(end[s], before) + each * static_cast<double>(layers[s]);
      }
    const auto copies =
        static_cast<double>(problem.copies(mesh) * mesh.context);
    Evaluation result;
    result.seconds = end.back() * (1 + 1e-9);
    const double split = static_cast<double>(mesh.context) *
                         (mesh.sequence ? static_cast<double>(mesh.tensor) : 1);
    for (int64_t s = 0; s < stages; ++s) {
      const auto own = static_cast<double>(layers[s]);
      const double weights = own * problem.layer.elements /
                             static_cast<double>(mesh.tensor) *
                             (problem.layer.bytesPerElement +
                              problem.layer.sharedBytesPerElement / copies);
      const double saved = static_cast<double>(std::min(count, stages - s)) *
                           own * problem.layer.inputBytes / split *
                           (again ? 1 : 8);
      result.bytes =
          std::max(result.bytes, problem.fixedBytes + 1 +
                                     static_cast<int64_t>(weights + saved));
    }
    return result;
  }

  std::vector<LayerWay> ways(const MeshSizes &mesh) const {
    const double split = static_cast<double>(mesh.context) *
                         (mesh.sequence ? static_cast<double>(mesh.tensor) : 1);
    return {{7 * problem.layer.inputBytes / split, layer(mesh)},
            {0, layer(mesh) * 1.3}};
  }

  MeshVerdict judge(const MeshSizes &mesh, int64_t budget) const {
    MeshVerdict verdict = {mesh, std::nullopt, evaluate(mesh, true)};
    for (bool again : {true, false})
      if (const Evaluation e = evaluate(mesh, again);
          e.bytes <= budget &&
          (!verdict.best || e.seconds < verdict.best->seconds))
        verdict.best = e;
    return verdict;
  }

private:
  const MeshProblem &problem;
  double loss;
};

MeshProblem problemOf(std::mt19937 &random) {
  auto one = [&](std::initializer_list<int64_t> values) {
    return *(values.begin() + random() % values.size());
  };
  MeshProblem problem;
  problem.ranks = one({1, 2, 6, 8, 16, 64});
  problem.ranksPerNode = one({1, 2, 4, 8});
  problem.layers = one({2, 6, 8, 14, 30, 61});
  if (random() % 8 == 0)
    problem.lastLayers = one({1, 2, 6});
  problem.heads = one({4, 6, 8, 32});
  problem.tokens = one({96, 6144, 131072});
  problem.microBatches = problem.ranks * one({1, 2, 4, 12});
  if (random() % 4 == 0)
    problem.tensor = one({1, 2});
  if (random() % 4 == 0)
    problem.sequence = random() % 2;
  const double input = 1e6 * static_cast<double>(one({1, 10, 100}));
  problem.layer = {1e8, 6, 12, input, input * static_cast<double>(one({1, 2})),
                   0.01};
  const double attention = 1e-3 * static_cast<double>(one({1, 10}));
  problem.attention = [=](int64_t context) {
    const double slower = 1 + 0.01 * static_cast<double>(context);
    return AttentionSeconds{attention * slower, 2 * attention * slower};
  };
  problem.fixedBytes = 1 << 20;
  problem.gather = [](int64_t ranks, int64_t inNode, double bytes) {
    return (ranks > inNode ? 1e-9 : 1e-11) * bytes *
               static_cast<double>(ranks - 1) / static_cast<double>(ranks) +
           1e-5 * static_cast<double>(ranks);
  };
  problem.addUp = [gather = problem.gather](int64_t ranks, int64_t inNode,
                                            double bytes) {
    return 2 * gather(ranks, inNode, bytes);
  };
  if (random() % 2)
    problem.pass = [](int64_t ranks, int64_t inNode, double bytes) {
      return (ranks > inNode ? 1e-9 : 1e-11) * bytes + 1e-5;
    };
  problem.overlap = random() % 2 ? 1 : 0.7;
  problem.blockSeconds = random() % 2 ? 2e-5 : 0;
  return problem;
}

TEST(MeshSearch, FindsWhatAllMeshesHave) {
  std::mt19937 random(7);
  int64_t all = 0, judged = 0, fitting = 0, forced = 0;
  for (int round = 0; round < 400; ++round) {
    const MeshProblem problem = problemOf(random);
    const Machine machine(problem, random);
    const std::vector<MeshSizes> meshes = meshesOf(problem);
    std::vector<MeshVerdict> verdicts;
    int64_t least = INT64_MAX, most = 0;
    for (const MeshSizes &mesh : meshes) {
      ASSERT_EQ(wrongWith(problem, mesh), "");
      const Evaluation first = lowerBound(problem, mesh);
      for (bool again : {false, true}) {
        const Evaluation is = machine.evaluate(mesh, again);
        const Evaluation close =
            lowerBound(problem, mesh, machine.ways(mesh), is.bytes);
        EXPECT_LE(first.bytes, is.bytes);
        EXPECT_LE(first.seconds, is.seconds);
        EXPECT_LE(close.seconds, is.seconds);
        EXPECT_LE(first.seconds, close.seconds * (1 + 1e-9));
        forced += close.seconds > first.seconds * 1.2;
      }
      least = std::min(least, machine.evaluate(mesh, true).bytes);
      most = std::max(most, machine.evaluate(mesh, false).bytes);
    }
    if (meshes.empty())
      continue;
    const int64_t budget =
        least + static_cast<int64_t>(
                    static_cast<double>(most - least) *
                    (static_cast<double>(random() % 100) / 100 - 0.05));
    for (const MeshSizes &mesh : meshes)
      if (MeshVerdict v = machine.judge(mesh, budget); v.best)
        verdicts.push_back(std::move(v));
    std::sort(verdicts.begin(), verdicts.end(),
              [](const MeshVerdict &a, const MeshVerdict &b) {
                return a.best->seconds < b.best->seconds;
              });
    const MeshSearchResult found = searchMeshes(
        problem, budget,
        [&](const MeshSizes &mesh) { return machine.ways(mesh); },
        [&](const MeshSizes &mesh) { return machine.judge(mesh, budget); });
    ASSERT_EQ(found.meshes, static_cast<int64_t>(meshes.size()));
    const auto near = std::count_if(
        verdicts.begin(), verdicts.end(), [&](const MeshVerdict &v) {
          return v.best->seconds < 1.25 * verdicts[0].best->seconds;
        });
    ASSERT_GE(found.fitting.size(), std::min<size_t>(2, near));
    for (size_t i = 0; i < 2 && i < verdicts.size(); ++i)
      if (verdicts[i].best->seconds < 1.25 * verdicts[0].best->seconds)
        EXPECT_EQ(found.fitting[i].best->seconds, verdicts[i].best->seconds);
    for (const MeshVerdict &v : found.fitting)
      EXPECT_LE(v.best->bytes, budget);
    all += found.meshes;
    judged += found.evaluated;
    fitting += !verdicts.empty();
  }
  EXPECT_GT(fitting, 200);
  EXPECT_LT(judged * 2, all); // bounds are of use
  EXPECT_GT(forced, 1000);    // by what does not fit among them
}

TEST(MeshSearch, SecondsOfALayerWithinBytes) {
  // "solved" is above the line from the one to the other.
  const std::vector<LayerWay> ways = {{100, 1}, {60, 1.9}, {20, 2}, {0, 4}};
  EXPECT_DOUBLE_EQ(secondsWithin(ways, 200), 1);
  EXPECT_DOUBLE_EQ(secondsWithin(ways, 100), 1);
  EXPECT_DOUBLE_EQ(secondsWithin(ways, 60), 1.5);
  EXPECT_DOUBLE_EQ(secondsWithin(ways, 20), 2);
  EXPECT_DOUBLE_EQ(secondsWithin(ways, 10), 3);
  EXPECT_DOUBLE_EQ(secondsWithin(ways, 0), 4);
  EXPECT_DOUBLE_EQ(secondsWithin(ways, -1), 4);
  EXPECT_DOUBLE_EQ(secondsWithin({{5, 3}}, 1), 3);
}

TEST(MeshSearch, ContextsOverNodesKeepTokens) {
  MeshProblem problem;
  problem.ranks = 4096;
  problem.ranksPerNode = 8;
  problem.layers = 6;
  problem.tokens = 32768;
  problem.microBatches = 4096;
  problem.stages = 1;
  auto most = [&] {
    int64_t context = 0;
    for (const MeshSizes &mesh : meshesOf(problem))
      context = std::max(context, mesh.context);
    return context;
  };
  EXPECT_EQ(most(), 32); // 1024 tokens each
  problem.tokens = 1024;
  EXPECT_EQ(most(), 8); // within a node as many as it has
  problem.context = 64; // but for what is written
  EXPECT_EQ(most(), 64);
}

TEST(MeshSearch, WhatIsNoMesh) {
  MeshProblem problem;
  problem.ranks = 16;
  problem.layers = 6;
  problem.heads = 4;
  problem.tokens = 64;
  problem.microBatches = 8;
  EXPECT_EQ(wrongWith(problem, {2, 1, 1, false}), "");
  EXPECT_EQ(wrongWith(problem, {3, 1, 1, false}),
            "the product does not divide the ranks");
  EXPECT_EQ(wrongWith(problem, {8, 1, 1, false}),
            "4 heads cannot be divided among 8 ranks");
  EXPECT_EQ(wrongWith(problem, {1, 1, 1, false}),
            "the samples of a step cannot be divided among 16 copies");
  // The last stage has what the others leave, as far as they leave any.
  problem.layers = 126;
  EXPECT_EQ(layersOfStages(problem, 16)->other, 8);
  EXPECT_EQ(layersOfStages(problem, 16)->last, 6);
  EXPECT_FALSE(layersOfStages(problem, 64));
  problem.lastLayers = 14;
  EXPECT_EQ(layersOfStages(problem, 8)->other, 16);
  EXPECT_FALSE(layersOfStages(problem, 16));
  EXPECT_FALSE(layersOfStages(problem, 1));
  problem.lastLayers.reset();
  problem.layers = 6;
  EXPECT_EQ(wrongWith(problem, {1, 1, 16, false}),
            "6 layers cannot be divided among 16 stages");
  problem.tokens = 6;
  EXPECT_EQ(wrongWith(problem, {1, 2, 1, false}),
            "6 tokens cannot be divided among 4 ranks");
  EXPECT_EQ(wrongWith(problem, {4, 1, 1, true}),
            "6 tokens cannot be divided among 4 ranks");
  problem.tensor = 1;
  EXPECT_EQ(wrongWith(problem, {2, 1, 1, false}),
            "a size that is kept is another");
  for (const MeshSizes &mesh : meshesOf(problem))
    EXPECT_EQ(mesh.tensor, 1);
}

} // namespace
} // namespace accel::tune
