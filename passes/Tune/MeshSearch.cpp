//===- MeshSearch.cpp - Which ranks share what ----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Tune/MeshSearch.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace accel::tune {
namespace {

/// Behind attention and the MLP forward, and before them backward,
/// tensor-parallel ranks add up what they have.
constexpr double sumsOfLayer = 4;
/// The second best is told exactly where it is at most so much slower.
constexpr double worthTelling = 1.25;
/// Nodes below which a mesh is looked for that speaks against several.
constexpr int64_t acrossAtMost = 4;
constexpr int triesOfOtherSide = 4;
/// Context-parallel ranks need all keys and values forward and backward.
constexpr double gathersOfLayer = 2;
/// Over nodes, tokens that each context-parallel rank has at least: of two
/// pieces of fewer than 512 the kernels are shorter than their dispatch, and a
/// step of more ranks is no shorter.
constexpr int64_t tokensOverNodes = 1024;

struct Bounded {
  MeshSizes mesh;
  Evaluation bound;
  bool close = false; // by the functions of the mesh
  bool operator<(const Bounded &other) const {
    if (bound.seconds != other.bound.seconds)
      return bound.seconds < other.bound.seconds;
    return mesh < other.mesh;
  }
};

std::string divided(int64_t n, const char *what, int64_t among) {
  return std::to_string(n) + " " + what + " cannot be divided among " +
         std::to_string(among) + " ranks";
}

/// Context-parallel ranks of a node.
int64_t inNode(const MeshProblem &problem, const MeshSizes &mesh) {
  return std::clamp<int64_t>(problem.ranksPerNode / mesh.tensor, 1,
                             mesh.context);
}

/// Attention of a layer on one rank, and what it waits for the keys that are
/// passed round and for their gradients that come back.
double attends(const MeshProblem &problem, const MeshSizes &mesh) {
  if (!problem.attention)
    return 0;
  const auto sharing = static_cast<double>(mesh.tensor * mesh.context);
  const AttentionSeconds computed = problem.attention(mesh.context);
  double passed = 0; // forward; backward at least as much
  if (problem.pass && mesh.context > 1)
    passed = static_cast<double>(mesh.context - 1) *
             problem.pass(mesh.context, inNode(problem, mesh),
                          problem.layer.keyBytes / sharing);
  double seconds = 0;
  for (const double half : {computed.forward, computed.backward})
    seconds += half / sharing + passed -
               problem.overlap * std::min(half / sharing, passed);
  // A block of keys of each rank.
  if (mesh.context > 1)
    seconds += static_cast<double>(mesh.context) * problem.blockSeconds;
  return seconds;
}

class MeshSearcher {
public:
  MeshSearcher(const MeshProblem &problem, int64_t budgetBytes,
               const LayerWays &layerWays, const EvaluateMesh &evaluate,
               const std::function<void(int64_t, int64_t)> &progress)
      : problem(problem), budgetBytes(budgetBytes), layerWays(layerWays),
        evaluate(evaluate), progress(progress) {}

  MeshSearchResult run() {
    std::set<Bounded> queue;
    for (const MeshSizes &mesh : meshesOf(problem))
      queue.insert({mesh, lowerBound(problem, mesh), false});
    const std::vector<Bounded> all(queue.begin(), queue.end());
    result.meshes = static_cast<int64_t>(all.size());
    int64_t done = 0;
    while (!queue.empty()) {
      const Bounded next = *queue.begin();
      if (next.bound.seconds >= enough())
        break;
      queue.erase(queue.begin());
      if (next.bound.bytes > budgetBytes) {
        ++done;
        continue;
      }
      if (!next.close) {
        lookCloser(next.mesh, queue);
        continue;
      }
      if (progress)
        progress(done, result.meshes);
      judge(next.mesh);
      ++done;
    }
    // By their bounds none fits: the one that is nearest to it.
    if (result.evaluated == 0 && !all.empty())
      judge(std::min_element(all.begin(), all.end(),
                             [](const Bounded &a, const Bounded &b) {
                               return a.bound.bytes < b.bound.bytes;
                             })
                ->mesh);
    lookAtOtherSide(all);
    return std::move(result);
  }

private:
  /// Meshes that take so long cannot be the best, nor be told beside it.
  double enough() const {
    if (result.fitting.empty())
      return std::numeric_limits<double>::infinity();
    const double told = result.fitting[0].best->seconds * worthTelling;
    return result.fitting.size() < 2
               ? told
               : std::min(told, result.fitting[1].best->seconds);
  }

  const std::vector<LayerWay> &waysOf(MeshSizes mesh) {
    const MeshSizes asked = mesh;
    mesh.stages = 1; // no part of what functions compute
    auto [known, isNew] = layers.try_emplace(mesh);
    if (isNew)
      known->second = layerWays(asked);
    return known->second;
  }

  /// Back to its place in `queue`, by the functions that it has.
  void lookCloser(const MeshSizes &mesh, std::set<Bounded> &queue) {
    if (const auto &ways = waysOf(mesh); !ways.empty())
      queue.insert({mesh, lowerBound(problem, mesh, ways, budgetBytes), true});
  }

  void judge(const MeshSizes &mesh) {
    MeshVerdict verdict = evaluate(mesh);
    ++result.evaluated;
    if (verdict.best) {
      auto at = std::upper_bound(
          result.fitting.begin(), result.fitting.end(), verdict,
          [](const MeshVerdict &a, const MeshVerdict &b) {
            return a.best->seconds < b.best->seconds;
          });
      result.fitting.insert(at, std::move(verdict));
    } else if (verdict.smallest.possible &&
               (!result.lacking ||
                verdict.smallest.bytes < result.lacking->smallest.bytes)) {
      result.lacking = std::move(verdict);
    }
  }

  bool crosses(const MeshSizes &mesh) const {
    return mesh.tensor > problem.ranksPerNode;
  }

  /// What speaks against tensor parallelism over nodes, or within one: the most
  /// promising such mesh by its bound.
  void lookAtOtherSide(const std::vector<Bounded> &order) {
    if (result.fitting.empty())
      return;
    const bool across = !crosses(result.fitting.front().mesh);
    for (const MeshVerdict &verdict : result.fitting)
      if (crosses(verdict.mesh) == across) {
        result.otherSide = verdict;
        return;
      }
    std::set<Bounded> candidates;
    for (const Bounded &next : order)
      if (crosses(next.mesh) == across && next.bound.bytes <= budgetBytes &&
          next.mesh.tensor < problem.ranksPerNode * acrossAtMost)
        candidates.insert(next);
    for (int tries = 0; tries < triesOfOtherSide && !candidates.empty();) {
      const Bounded next = *candidates.begin();
      candidates.erase(candidates.begin());
      if (!next.close) {
        lookCloser(next.mesh, candidates);
        continue;
      }
      ++tries;
      MeshVerdict verdict = evaluate(next.mesh);
      ++result.evaluated;
      if (verdict.best) {
        result.otherSide = std::move(verdict);
        return;
      }
    }
  }

  const MeshProblem &problem;
  int64_t budgetBytes;
  const LayerWays &layerWays;
  const EvaluateMesh &evaluate;
  const std::function<void(int64_t, int64_t)> &progress;
  MeshSearchResult result;
  std::map<MeshSizes, std::vector<LayerWay>> layers; // by sharing
};

} // namespace

std::optional<LayersOfStages> layersOfStages(const MeshProblem &problem,
                                             int64_t stages) {
  const int64_t layers = problem.layers;
  if (stages == 1 && !problem.lastLayers)
    return LayersOfStages{layers, layers};
  if (stages <= 1 || stages > layers)
    return std::nullopt;
  const int64_t others = stages - 1;
  // The last stage, which has the loss, has fewest.
  const int64_t last = problem.lastLayers.value_or(
      layers - others * ((layers + stages - 1) / stages));
  if (last < 1 || last >= layers || (layers - last) % others)
    return std::nullopt;
  return LayersOfStages{last, (layers - last) / others};
}

std::string wrongWith(const MeshProblem &problem, const MeshSizes &mesh) {
  if (mesh.tensor < 1 || mesh.context < 1 || mesh.stages < 1)
    return "sizes are at least 1";
  for (int64_t size : {mesh.tensor, mesh.context, mesh.stages})
    if (size > problem.ranks)
      return "a size is above the number of ranks";
  auto kept = [](const std::optional<int64_t> &size, int64_t is) {
    return !size || *size == is;
  };
  if (!kept(problem.tensor, mesh.tensor) ||
      !kept(problem.context, mesh.context) ||
      !kept(problem.stages, mesh.stages) ||
      (problem.sequence && mesh.sequence != *problem.sequence))
    return "a size that is kept is another";
  if (problem.ranks % (mesh.tensor * mesh.context * mesh.stages))
    return "the product does not divide the ranks";
  if (problem.heads % mesh.tensor)
    return divided(problem.heads, "heads", mesh.tensor);
  // Head-tail order: each rank has two pieces.
  if (mesh.context > 1 && problem.tokens % (2 * mesh.context))
    return divided(problem.tokens, "tokens", 2 * mesh.context);
  if (mesh.sequence && mesh.tensor > 1 &&
      problem.tokens / mesh.context % mesh.tensor)
    return divided(problem.tokens / mesh.context, "tokens", mesh.tensor);
  if (!layersOfStages(problem, mesh.stages))
    return std::to_string(problem.layers) + " layers cannot be divided among " +
           std::to_string(mesh.stages) + " stages";
  if (problem.microBatches % problem.copies(mesh))
    return "the samples of a step cannot be divided among " +
           std::to_string(problem.copies(mesh)) + " copies";
  if (!kept(problem.accumulation, problem.accumulationOf(mesh)))
    return "the micro-batches of a step are kept";
  return "";
}

std::vector<MeshSizes> meshesOf(const MeshProblem &problem) {
  std::vector<int64_t> sizes;
  for (int64_t n = 1; n * n <= problem.ranks; ++n)
    if (problem.ranks % n == 0) {
      sizes.push_back(n);
      if (n * n != problem.ranks)
        sizes.push_back(problem.ranks / n);
    }
  std::vector<MeshSizes> result;
  for (int64_t tensor : sizes)
    for (int64_t context : sizes)
      for (int64_t stages : sizes)
        for (bool sequence : {false, true}) {
          const MeshSizes mesh = {tensor, context, stages, sequence};
          // It takes fewer bytes for the same exchanges, and says nothing
          // without ranks that share layers.
          const bool wanted =
              tensor > 1 && problem.tokens % (context * tensor) == 0
                  ? true
                  : problem.idleSequence;
          const bool tooFewTokens = context > problem.ranksPerNode &&
                                    problem.tokens / context < tokensOverNodes;
          if ((problem.sequence || sequence == wanted) &&
              (!tooFewTokens || problem.context) &&
              tensor <= problem.ranks / context &&
              tensor * context <= problem.ranks / stages &&
              wrongWith(problem, mesh).empty())
            result.push_back(mesh);
        }
  std::sort(result.begin(), result.end());
  return result;
}

double secondsWithin(const std::vector<LayerWay> &ways, double bytes) {
  const LayerWay *smallest = nullptr;
  for (const LayerWay &way : ways)
    if (!smallest || std::pair(way.savedBytes, way.seconds) <
                         std::pair(smallest->savedBytes, smallest->seconds))
      smallest = &way;
  double least = smallest ? smallest->seconds : 0;
  for (const LayerWay &large : ways)
    for (const LayerWay &small : ways) {
      if (small.savedBytes > bytes)
        continue;
      // So much of the layers can be computed the other way.
      const double part = large.savedBytes <= bytes
                              ? 1
                              : (bytes - small.savedBytes) /
                                    (large.savedBytes - small.savedBytes);
      least = std::min(least,
                       small.seconds + part * (large.seconds - small.seconds));
    }
  return least;
}

namespace {

/// Of the rank that holds most, at least.
struct LeastBytes {
  double weights = 0; // of a layer, with gradients and states
  double layers = 0;  // of the stage that saves most
  double saving = 0;  // its layers of all micro-batches in flight
};

LeastBytes leastBytes(const MeshProblem &problem, const MeshSizes &mesh) {
  const LayerCost &layer = problem.layer;
  const auto copies = static_cast<double>(problem.copies(mesh) * mesh.context);
  const int64_t first = layersOfStages(problem, mesh.stages)->other;
  LeastBytes least;
  least.weights =
      layer.elements / static_cast<double>(mesh.tensor) *
      (layer.bytesPerElement + layer.sharedBytesPerElement / copies);
  least.layers = static_cast<double>(first);
  least.saving = static_cast<double>(
      std::min(problem.accumulationOf(mesh), mesh.stages) * first);
  return least;
}

/// Of a step whose layers take so many seconds each. The last stage waits for
/// the first micro-batch to pass all others forward, and they for its last
/// backward.
double stepSeconds(const MeshProblem &problem, const MeshSizes &mesh,
                   double layerSeconds) {
  const auto most =
      static_cast<double>(layersOfStages(problem, mesh.stages)->most());
  const auto count = static_cast<double>(problem.accumulationOf(mesh));
  return layerSeconds *
         ((count - 1) * most + static_cast<double>(problem.layers));
}

} // namespace

Evaluation lowerBound(const MeshProblem &problem, const MeshSizes &mesh) {
  const LayerCost &layer = problem.layer;
  const auto tensor = static_cast<double>(mesh.tensor),
             context = static_cast<double>(mesh.context);
  const LeastBytes least = leastBytes(problem, mesh);
  // With full recompute a layer saves its input alone.
  const double split = context * (mesh.sequence ? tensor : 1);
  const double inputs =
      layer.inputsStay ? least.saving * layer.inputBytes / split : 0;
  const auto most =
      static_cast<double>(layersOfStages(problem, mesh.stages)->most());
  Evaluation bound;
  bound.bytes =
      problem.fixedBytes +
      static_cast<int64_t>(std::max(least.weights * most,
                                    least.weights * least.layers + inputs));
  const int64_t node = problem.ranksPerNode;
  double each = layer.seconds / (tensor * context);
  if (problem.addUp && mesh.tensor > 1)
    each +=
        sumsOfLayer * problem.addUp(mesh.tensor, std::min(mesh.tensor, node),
                                    layer.inputBytes / context);
  each += attends(problem, mesh);
  if (!problem.pass && problem.gather && mesh.context > 1)
    // At best all of it beside what is computed.
    each =
        std::max(each, gathersOfLayer *
                           problem.gather(mesh.context, inNode(problem, mesh),
                                          layer.keyBytes / tensor));
  bound.seconds = stepSeconds(problem, mesh, each);
  return bound;
}

Evaluation lowerBound(const MeshProblem &problem, const MeshSizes &mesh,
                      const std::vector<LayerWay> &ways, int64_t budgetBytes) {
  const LeastBytes least = leastBytes(problem, mesh);
  const double left = static_cast<double>(budgetBytes - problem.fixedBytes) -
                      least.weights * least.layers;
  Evaluation bound = lowerBound(problem, mesh);
  bound.seconds =
      stepSeconds(problem, mesh, secondsWithin(ways, left / least.saving));
  return bound;
}

MeshSearchResult
searchMeshes(const MeshProblem &problem, int64_t budgetBytes,
             const LayerWays &layerWays, const EvaluateMesh &evaluate,
             const std::function<void(int64_t, int64_t)> &progress) {
  return MeshSearcher(problem, budgetBytes, layerWays, evaluate, progress)
      .run();
}

} // namespace accel::tune
