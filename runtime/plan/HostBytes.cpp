//===- HostBytes.cpp - What a rank holds of the host ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Timeline.h"

#include "runtime/plan/DiskLayout.h"
#include "runtime/plan/UpdateLayout.h"

#include <algorithm>

namespace accel::plan {

int64_t hostBytes(const Plan &plan, const Unit &unit) {
  const Offload &offload = plan.offload;
  int64_t bytes = 0;
  if ((offload.parameters || (offload.states && unit.trainable)) &&
      !shardOnDisk(plan, unit))
    bytes += alignedBytes(shardNumel(plan, unit) * itemSize(unit.storage));
  if (offload.parameters && unit.gather != unit.storage)
    bytes += alignedBytes(shardNumel(plan, unit) * itemSize(unit.gather));
  if (offload.states && unit.trainable)
    bytes += (offload.onDisk() ? 0 : stateBytes(plan, unit)) +
             roleBytes(plan, unit, Role::ShardGradient);
  return bytes;
}

int64_t hostBytes(const Plan &plan, int stage) {
  int64_t bytes = 0;
  for (const Unit &unit : plan.units)
    if (unit.stage == stage)
      bytes += hostBytes(plan, unit);
  int64_t values = 0;
  for (const Program &program : plan.programs)
    if (program.stage == stage)
      values = std::max(values, hostBytes(program));
  return bytes + values +
         diskBuffers(plan, stage) * diskBufferBytes(plan, stage);
}

std::map<int, int64_t> hostPlaces(const Program &program) {
  std::map<int, int64_t> places;
  int64_t end = 0;
  for (const ProgramInstruction &instruction : program.instructions)
    if (instruction.kind == ProgramInstructionKind::Offload)
      for (int value : instruction.inputs)
        if (const int root = rootOf(program, value);
            places.try_emplace(root, end).second)
          end += program.values[root].bytes;
  return places;
}

int64_t hostBytes(const Program &program) {
  int64_t bytes = 0;
  for (const auto &[root, place] : hostPlaces(program))
    bytes += program.values[root].bytes;
  return bytes;
}

} // namespace accel::plan
