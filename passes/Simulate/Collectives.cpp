//===- Collectives.cpp - Seconds of a collective --------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Simulate/Time.h"

#include <algorithm>
#include <cmath>

namespace accel {

using namespace plan;

/// How many ranks of a group over `axes` share a node that has room for
/// `room` ranks; ranks are counted row by row, the last axis fastest.
static double ranksInNode(const Plan &plan,
                          const std::vector<std::string> &axes, double room) {
  double inNode = 1, stride = 1;
  for (auto axis = plan.axes.rbegin(); axis != plan.axes.rend(); ++axis) {
    const double size = static_cast<double>(axis->size);
    if (std::find(axes.begin(), axes.end(), axis->name) != axes.end())
      inNode *= std::clamp(room / stride, 1.0, size);
    stride *= size;
  }
  return inNode;
}

double collectiveSeconds(const Plan &plan, const Target &target,
                         int64_t ranksPerNode, StepKind kind,
                         const std::vector<std::string> &axes, double bytes) {
  const double ranks = static_cast<double>(plan.groupSize(axes));
  if (ranks <= 1)
    return 0;
  const double room = static_cast<double>(
      ranksPerNode > 0 ? ranksPerNode : target.ranksPerNode);
  const double inNode = ranksInNode(plan, axes, room);
  const double nodes = std::ceil(ranks / inNode);
  // The data goes round once; an all-reduce is a reduce-scatter and a gather.
  const double rounds = kind == StepKind::AllReduce ? 2 : 1;
  const Link &inside = target.insideNode, &between = target.betweenNodes;
  double seconds = inside.latencySeconds;
  double bandwidth = inside.bytesPerSecond;
  if (nodes > 1) {
    // Rings enter and leave each node over the links of all its ranks.
    seconds = std::max(seconds, between.latencySeconds);
    const double crossing = between.bytesPerSecond * inNode;
    bandwidth = inNode > 1 ? std::min(bandwidth, crossing) : crossing;
  }
  const double crossings = nodes > 1 ? nodes - 1 : 0;
  const double hops = (ranks - 1 - crossings) * inside.hopSeconds +
                      crossings * between.hopSeconds;
  return seconds + rounds * ((ranks - 1) / ranks * bytes / bandwidth + hops);
}

} // namespace accel
