//===- Collectives.cpp - Seconds of a collective --------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Cost/CollectiveCost.h"
#include "passes/Simulate/Time.h"

namespace accel {

using namespace plan;

double collectiveSeconds(const Plan &plan, const Target &target,
                         int64_t ranksPerNode, ProgramInstructionKind kind,
                         const std::vector<std::string> &axes, double bytes) {
  const Mesh mesh{plan.axes};
  const AxisGroup group = mesh.group(
      mesh.set(axes), ranksPerNode > 0 ? ranksPerNode : target.ranksPerNode);
  Collective collective = Collective::AllGather;
  if (kind == ProgramInstructionKind::ReduceScatter)
    collective = Collective::ReduceScatter;
  else if (kind == ProgramInstructionKind::AllReduce)
    collective = Collective::AllReduce;
  return collectiveSeconds(target, collective, group, bytes);
}

} // namespace accel
