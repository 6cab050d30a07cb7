//===- RecomputeFrontier.cpp - Checkpointing, from fast to small ----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Tune/RecomputeFrontier.h"

#include <algorithm>

namespace accel::tune {
namespace {

struct Edge {
  int group, from, to;
  double price; // seconds a byte
};

/// Positions in `costs` of the lower hull, from the fastest to the smallest.
std::vector<int> lowerHull(const std::vector<VariantCost> &costs,
                           const std::vector<bool> &allowed) {
  std::vector<int> order;
  for (size_t i = 0; i < costs.size(); ++i)
    if (allowed[i])
      order.push_back(static_cast<int>(i));
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return costs[a].seconds != costs[b].seconds
               ? costs[a].seconds < costs[b].seconds
               : costs[a].bytes < costs[b].bytes;
  });
  std::vector<int> hull;
  for (int v : order) {
    if (!hull.empty() && costs[v].bytes >= costs[hull.back()].bytes)
      continue; // slower and no leaner
    auto slope = [&](int a, int b) {
      return (costs[b].seconds - costs[a].seconds) /
             static_cast<double>(costs[a].bytes - costs[b].bytes);
    };
    while (hull.size() > 1 &&
           slope(hull[hull.size() - 2], hull.back()) >= slope(hull.back(), v))
      hull.pop_back();
    hull.push_back(v);
  }
  return hull;
}

} // namespace

size_t nearLast(const std::vector<std::vector<int>> &frontier) {
  return std::min<size_t>(frontier.size(), 5);
}

std::vector<int> spread(const std::vector<int> &values, size_t limit) {
  if (values.size() <= limit)
    return values;
  std::vector<int> result;
  for (size_t i = 0; i < limit; ++i)
    result.push_back(values[i * (values.size() - 1) / (limit - 1)]);
  return result;
}

std::vector<std::vector<int>> recomputeFrontier(const Space &space, int split,
                                                const CostOf &costOf) {
  if (!space.open(Knob::Checkpoint))
    return {space.configured.counts};
  if (space.uniformCheckpoint)
    return space.uniformCounts();
  std::vector<int> counts(space.configured.counts.size(), 0);
  std::vector<Edge> edges;
  for (size_t g = 0; g < space.groups.size(); ++g) {
    const LayerGroup &group = space.groups[g];
    std::vector<VariantCost> costs;
    for (size_t v = 0; v < group.variants.size(); ++v)
      costs.push_back(costOf(split, static_cast<int>(g), static_cast<int>(v)));
    std::vector<int> hull = lowerHull(costs, group.allowed);
    counts[group.offset + hull[0]] = static_cast<int>(group.calls.size());
    for (size_t i = 0; i + 1 < hull.size(); ++i)
      edges.push_back({static_cast<int>(g), hull[i], hull[i + 1],
                       (costs[hull[i + 1]].seconds - costs[hull[i]].seconds) /
                           static_cast<double>(costs[hull[i]].bytes -
                                               costs[hull[i + 1]].bytes)});
  }
  std::stable_sort(
      edges.begin(), edges.end(),
      [](const Edge &a, const Edge &b) { return a.price < b.price; });
  std::vector<std::vector<int>> frontier = {counts};
  for (const Edge &edge : edges) {
    const LayerGroup &group = space.groups[edge.group];
    for (size_t i = 0; i < group.calls.size(); ++i) {
      --counts[group.offset + edge.from];
      ++counts[group.offset + edge.to];
      frontier.push_back(counts);
    }
  }
  return frontier;
}

} // namespace accel::tune
