//===- SolveCut.cpp - A bound and a start by minimum cuts -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Recompute/SolveCut.h"

#include <algorithm>
#include <cmath>
#include <lemon/preflow.h>
#include <lemon/smart_graph.h>

namespace accel {

namespace {

struct Point {
  std::vector<bool> kept;
  double seconds = 0;
  int64_t bytes = 0;
};

Point pointOf(const RecomputeModel &model, std::vector<bool> kept) {
  Point point;
  point.seconds = model.seconds(model.closure(kept));
  point.bytes = model.savedBytes(kept);
  point.kept = std::move(kept);
  return point;
}

/// Capacities are integers, so that the maximum flow is exact.
constexpr double capacityOfAll = 1e15;

/// The saved set of least timeWeight * seconds + bytePrice * bytes. On the
/// side of the source are the operations that are recomputed, and the
/// storages that somebody wants.
Point cheapest(const RecomputeModel &model, double timeWeight,
               double bytePrice) {
  using Graph = lemon::SmartDigraph;
  Graph graph;
  graph.reserveNode(
      static_cast<int>(model.nodes.size() + model.storages.size() + 2));
  Graph::ArcMap<int64_t> capacity(graph);
  const auto source = graph.addNode(), sink = graph.addNode();
  std::vector<Graph::Node> nodes, storages;
  for (size_t n = 0; n < model.nodes.size(); ++n)
    nodes.push_back(graph.addNode());
  for (size_t s = 0; s < model.storages.size(); ++s)
    storages.push_back(graph.addNode());
  double all = 0;
  for (const auto &node : model.nodes)
    all += timeWeight * node.seconds;
  for (const auto &storage : model.storages)
    all += bytePrice * static_cast<double>(storage.bytes);
  const double scale = capacityOfAll / std::max(all, 1e-300);
  const int64_t infinite = static_cast<int64_t>(4 * capacityOfAll);
  auto arc = [&](Graph::Node from, Graph::Node to, int64_t c) {
    capacity[graph.addArc(from, to)] = c;
  };
  for (size_t n = 0; n < model.nodes.size(); ++n) {
    const auto &node = model.nodes[n];
    arc(nodes[n], sink,
        node.mayRecompute ? std::llround(timeWeight * node.seconds * scale)
                          : infinite);
    for (int s : node.reads)
      arc(nodes[n], storages[s], infinite);
  }
  for (size_t s = 0; s < model.storages.size(); ++s) {
    const auto &storage = model.storages[s];
    if (storage.needed)
      arc(source, storages[s], infinite);
    arc(storages[s], nodes[storage.node],
        std::llround(bytePrice * static_cast<double>(storage.bytes) * scale));
  }
  lemon::Preflow<Graph, Graph::ArcMap<int64_t>> flow(graph, capacity, source,
                                                     sink);
  flow.runMinCut();
  std::vector<bool> kept(model.storages.size());
  for (size_t s = 0; s < kept.size(); ++s)
    kept[s] =
        flow.minCut(storages[s]) && !flow.minCut(nodes[model.storages[s].node]);
  return pointOf(model, std::move(kept));
}

/// Adds storages as long as they fit, the one that saves most time for its
/// bytes first.
Point fill(const RecomputeModel &model, Point point, int64_t capBytes) {
  while (true) {
    Point best;
    double bestValue = 0;
    for (size_t s = 0; s < point.kept.size(); ++s) {
      if (point.kept[s])
        continue;
      std::vector<bool> kept = point.kept;
      kept[s] = true;
      // Of an operation with more results, all that is read.
      for (int other : model.nodes[model.storages[s].node].makes)
        kept[other] = true;
      Point next = pointOf(model, std::move(kept));
      double gain = point.seconds - next.seconds;
      double cost =
          std::max<double>(static_cast<double>(next.bytes - point.bytes), 1e-3);
      if (next.bytes > capBytes || gain <= 0 || gain / cost <= bestValue)
        continue;
      bestValue = gain / cost;
      best = std::move(next);
    }
    if (best.kept.empty())
      return point;
    point = std::move(best);
  }
}

} // namespace

CutResult solveByCuts(const RecomputeModel &model, int64_t capBytes) {
  CutResult result;
  Point most = pointOf(model, std::vector<bool>(model.storages.size(), true));
  Point least = cheapest(model, 0, 1);
  result.feasible = least.bytes <= capBytes;
  if (!result.feasible)
    return result;
  if (most.bytes <= capBytes) {
    result.kept = std::move(most.kept);
    return result;
  }
  double bound = 0;
  // Each price is the slope between the two points around the cap; it ends
  // when no point lies below their line. Prices only repeat by rounding.
  for (int round = 0; round < 64; ++round) {
    double price = (least.seconds - most.seconds) /
                   static_cast<double>(most.bytes - least.bytes);
    if (!(price > 0))
      break;
    Point point = cheapest(model, 1, price);
    double value = point.seconds + price * static_cast<double>(point.bytes);
    double line = least.seconds + price * static_cast<double>(least.bytes);
    // What rounding the capacities can have cost.
    double slack = line * 1e-12;
    bound = std::max(bound, std::min(value, line) - slack -
                                price * static_cast<double>(capBytes));
    if (value >= line - line * 1e-9)
      break;
    (point.bytes <= capBytes ? least : most) = std::move(point);
  }
  Point filled = fill(model, std::move(least), capBytes);
  result.seconds = filled.seconds;
  result.boundSeconds = std::min(bound, filled.seconds);
  result.kept = std::move(filled.kept);
  return result;
}

} // namespace accel
