//===- Collectives.cpp - Seconds of a collective --------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Cost/CollectiveCost.h"
#include "passes/Simulate/Time.h"

#include <algorithm>

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
  Collective collective = Collective::AllGather;
  if (kind == StepKind::ReduceScatter)
    collective = Collective::ReduceScatter;
  else if (kind == StepKind::AllReduce)
    collective = Collective::AllReduce;
  return collectiveSeconds(target, collective, {ranks, inNode}, bytes);
}

} // namespace accel
