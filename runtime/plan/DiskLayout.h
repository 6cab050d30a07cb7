//===- DiskLayout.h - What a rank's file holds ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Where states are on a disk (Disk) each trained unit has one record in the
// file: its states, and its parameters' shard where nothing but the update
// reads that in the host's memory. A buffer of the host takes any of them.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_DISKLAYOUT_H
#define ACCEL_RUNTIME_PLAN_DISKLAYOUT_H

#include "runtime/plan/Plan.h"

#include <vector>

namespace accel::plan {

/// Records begin and end at these, as reads and writes past the system's cache
/// (O_DIRECT) must: pages of memory, and of drives at least a block.
constexpr int64_t diskAlignment = 4096;

/// Tensors of a record stand one after the other.
struct DiskTensor {
  int state = -1; // -1: the parameters' shard
  DType dtype = DType::F32;
  int64_t elements = 0;
  int64_t offset = 0; // bytes in the record
};
/// Empty for a unit that has nothing on the disk.
std::vector<DiskTensor> diskTensors(const Plan &plan, const Unit &unit);
/// The shard of a unit's parameters is in no memory of the host.
bool shardOnDisk(const Plan &plan, const Unit &unit);
/// Bytes of the unit's record.
int64_t recordBytes(const Plan &plan, const Unit &unit);
/// Bytes of a rank's file.
int64_t diskBytes(const Plan &plan, int stage = 0);
/// Buffers of the host: as many as the plan says, but no more than records.
int64_t diskBuffers(const Plan &plan, int stage = 0);
/// Bytes of one.
int64_t diskBufferBytes(const Plan &plan, int stage = 0);
/// The units with a record, in the order of their updates.
std::vector<int> recordOrder(const Plan &plan, int stage = 0);
/// Units that are read ahead, where there are `buffers` of them.
int64_t readAhead(const Disk &disk, int64_t buffers);
/// The fewest buffers with which units are read and written beside an update.
int64_t leastBuffers(bool readAhead, bool writeBehind);

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_DISKLAYOUT_H
