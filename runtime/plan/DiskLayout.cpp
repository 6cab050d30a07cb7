//===- DiskLayout.cpp - What a rank's file holds --------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/DiskLayout.h"

#include "runtime/plan/UpdateLayout.h"

#include <algorithm>

namespace accel::plan {

/// A gather casts the shard in memory where it must, and copies that.
bool shardOnDisk(const Plan &plan, const Unit &unit) {
  return plan.offload.onDisk() && plan.offload.states && unit.trainable &&
         (!plan.offload.parameters || unit.gather != unit.storage);
}

std::vector<DiskTensor> diskTensors(const Plan &plan, const Unit &unit) {
  std::vector<DiskTensor> tensors;
  if (!plan.offload.onDisk() || !plan.offload.states || !unit.trainable)
    return tensors;
  int64_t end = 0;
  auto add = [&](int state, DType dtype, int64_t elements) {
    tensors.push_back({state, dtype, elements, end});
    end += alignedBytes(elements * itemSize(dtype));
  };
  if (shardOnDisk(plan, unit))
    add(-1, unit.storage, shardNumel(plan, unit));
  int state = 0;
  for (const StateLayout &layout : stateLayouts(plan, unit))
    add(state++, layout.dtype, layout.elements);
  return tensors;
}

int64_t recordBytes(const Plan &plan, const Unit &unit) {
  const std::vector<DiskTensor> tensors = diskTensors(plan, unit);
  if (tensors.empty())
    return 0;
  const DiskTensor &last = tensors.back();
  const int64_t end = last.offset + last.elements * itemSize(last.dtype);
  return (end + diskAlignment - 1) / diskAlignment * diskAlignment;
}

int64_t diskBytes(const Plan &plan, int stage) {
  int64_t bytes = 0;
  for (const Unit &unit : plan.units)
    if (unit.stage == stage)
      bytes += recordBytes(plan, unit);
  return bytes;
}

int64_t diskBuffers(const Plan &plan, int stage) {
  const int64_t records =
      std::count_if(plan.units.begin(), plan.units.end(), [&](const Unit &u) {
        return u.stage == stage && recordBytes(plan, u) > 0;
      });
  return std::min(plan.offload.disk.buffers, records);
}

int64_t diskBufferBytes(const Plan &plan, int stage) {
  int64_t bytes = 0;
  for (const Unit &unit : plan.units)
    if (unit.stage == stage)
      bytes = std::max(bytes, recordBytes(plan, unit));
  return bytes;
}

std::vector<int> recordOrder(const Plan &plan, int stage) {
  std::vector<int> order;
  for (const auto &[index, repeat] : plan.stepsOf(stage))
    for (const ProgramInstruction &at : plan.programs[index].instructions)
      if (at.kind == ProgramInstructionKind::Optimizer &&
          recordBytes(plan, plan.units[at.unit]) > 0)
        order.push_back(at.unit);
  return order;
}

int64_t leastBuffers(bool readAhead, bool writeBehind) {
  return 1 + (readAhead ? 1 : 0) + (writeBehind ? 1 : 0);
}

/// One buffer is updated, and one is written behind it.
int64_t readAhead(const Disk &disk, int64_t buffers) {
  return disk.readAhead
             ? std::max<int64_t>(0, buffers - (disk.writeBehind ? 2 : 1))
             : 0;
}

} // namespace accel::plan
