//===- DiskStates.h - States between a drive and updates --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Of plan::Disk. Each unit's record is read into one of a few pinned buffers
// before its update and written back behind it. Buffers take the records in the
// order of updates, round and round: while one is updated those that follow are
// read, the first ones of the next step too, and the one before is written.
// Between steps, when a checkpoint is read or written, a unit is held: then its
// states and its shard are there as any other's.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_EXECUTE_DISKSTATES_H
#define ACCEL_RUNTIME_EXECUTE_DISKSTATES_H

#include "runtime/execute/UnitStorage.h"
#include "runtime/plan/DiskLayout.h"
#include "runtime/storage/TransferQueue.h"

#include <memory>
#include <vector>

namespace accel::run {

class DiskStates {
public:
  /// `units` of this rank outlive it; those of other stages are null.
  /// Timepoints from `firstTimepoint` on are its own. Throws FileError.
  DiskStates(const plan::Plan &plan, int stage, int rank, Device &device,
             std::vector<std::unique_ptr<UnitStorage>> &units,
             int firstTimepoint, DiskIo io);
  ~DiskStates();

  /// Around the update of the next unit. Between the two its shard and states
  /// are there; what copies them to the device ends at `timepoint`.
  void begin(int unit);
  int timepoint() const { return firstTimepoint + slotOf(next); }
  void end();
  /// Starts to read what the next updates need.
  void readAhead();

  /// From here to `letGo`, or until another unit is held, the unit's shard and
  /// states are there; `changes`: and are written then. Nothing of a unit that
  /// has no record.
  void hold(int unit, bool changes);
  void letGo();

  int64_t bytes() const { return file.bytes(); }
  const char *io() const { return queue->name(); }
  bool isDirect() const { return file.isDirect(); }

private:
  struct Slot {
    FlatBuffer buffer;
    TransferQueue::Ticket reading, writing;
    bool copies = false; // to the device, until its timepoint
  };
  char *memoryOf(Slot &slot) const;
  int slotOf(int64_t index) const {
    return static_cast<int>(index % static_cast<int64_t>(slots.size()));
  }
  int unitAt(int64_t index) const {
    return order[index % static_cast<int64_t>(order.size())];
  }
  void startReads(int64_t end);
  void wait(TransferQueue::Ticket &ticket);
  /// Nothing uses the slot's buffer any more.
  void recycle(int slot);

  const plan::Plan &plan;
  Device &device;
  std::vector<std::unique_ptr<UnitStorage>> &units;
  const int firstTimepoint;
  const std::vector<int> order;       // units, by update
  std::vector<int64_t> places, sizes; // by unit: of its record
  ScratchFile file;
  std::vector<Slot> slots;
  int64_t ahead = 0;
  std::unique_ptr<TransferQueue> queue; // before the slots' memory goes
  /// Updates since the start: the next one, and the first whose record is not
  /// asked for.
  int64_t next = 0, started = 0;
  int held = -1; // unit, in the first slot
  bool heldChanges = false;
};

} // namespace accel::run

#endif // ACCEL_RUNTIME_EXECUTE_DISKSTATES_H
