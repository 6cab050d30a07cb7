//===- DiskStates.cpp - States between a drive and updates ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/execute/DiskStates.h"

#include "runtime/execute/FunctionRunner.h"

namespace accel::run {

DiskStates::DiskStates(const plan::Plan &plan, int stage, int rank,
                       Device &device,
                       std::vector<std::unique_ptr<UnitStorage>> &units,
                       int firstTimepoint, DiskIo io)
    : plan(plan), device(device), units(units), firstTimepoint(firstTimepoint),
      order(plan::recordOrder(plan, stage)),
      file(plan.offload.disk.folder, rank, plan::diskBytes(plan, stage)),
      slots(plan::diskBuffers(plan, stage)) {
  const plan::Disk &disk = plan.offload.disk;
  ahead = plan::readAhead(disk, static_cast<int64_t>(slots.size()));
  int64_t end = 0;
  for (const plan::Unit &unit : plan.units) {
    places.push_back(end);
    sizes.push_back(unit.stage == stage ? plan::recordBytes(plan, unit) : 0);
    end += sizes.back();
  }
  for (Slot &slot : slots) {
    slot.buffer = FlatBuffer(device, plan::DType::U8,
                             plan::diskBufferBytes(plan, stage), true);
    slot.buffer.allocate();
    if (reinterpret_cast<uintptr_t>(memoryOf(slot)) % plan::diskAlignment != 0)
      file.leaveDirect();
  }
  queue = TransferQueue::make(
      file, {io, disk.blockBytes, disk.queueDepth, disk.threads});
}

DiskStates::~DiskStates() {
  // What is under way ends before its memory does.
  queue.reset();
}

char *DiskStates::memoryOf(Slot &slot) const {
  return static_cast<char *>(slot.buffer.flat.mutable_data_ptr());
}

void DiskStates::wait(TransferQueue::Ticket &ticket) {
  if (!ticket)
    return;
  queue->wait(ticket);
}

void DiskStates::recycle(int slot) {
  Slot &of = slots[slot];
  wait(of.writing);
  if (of.copies)
    device.awaitOnHost(firstTimepoint + slot);
  of.copies = false;
}

/// A record was written before the slot that held it was used again, which is
/// before its turn comes back: there are no more slots than records.
void DiskStates::startReads(int64_t end) {
  for (; started < end; ++started) {
    const int slot = slotOf(started), unit = unitAt(started);
    recycle(slot);
    slots[slot].reading =
        queue->read(places[unit], memoryOf(slots[slot]), sizes[unit]);
  }
}

void DiskStates::readAhead() {
  letGo();
  if (!order.empty())
    startReads(next + ahead);
}

void DiskStates::begin(int unit) {
  letGo();
  if (order.empty() || unitAt(next) != unit)
    throw PlanError("unit '" + plan.units[unit].name +
                    "' is updated out of the order in which states are read");
  startReads(next + 1);
  Slot &slot = slots[slotOf(next)];
  wait(slot.reading);
  startReads(next + 1 + ahead);
  units[unit]->attach(memoryOf(slot));
}

void DiskStates::end() {
  const int unit = unitAt(next);
  Slot &slot = slots[slotOf(next)];
  units[unit]->detach();
  slot.copies = true;
  slot.writing = queue->write(places[unit], memoryOf(slot), sizes[unit]);
  if (!plan.offload.disk.writeBehind)
    wait(slot.writing);
  ++next;
}

void DiskStates::hold(int unit, bool changes) {
  if (held != unit) {
    letGo();
    if (sizes[unit] == 0)
      return;
    for (Slot &slot : slots)
      wait(slot.reading);
    for (size_t slot = 0; slot < slots.size(); ++slot)
      recycle(static_cast<int>(slot));
    started = next; // what was read ahead is read again
    TransferQueue::Ticket reading =
        queue->read(places[unit], memoryOf(slots[0]), sizes[unit]);
    wait(reading);
    units[unit]->attach(memoryOf(slots[0]));
    held = unit;
  }
  heldChanges = heldChanges || changes;
}

void DiskStates::letGo() {
  if (held < 0)
    return;
  const int unit = held;
  held = -1;
  units[unit]->detach();
  if (!heldChanges)
    return;
  heldChanges = false;
  TransferQueue::Ticket writing =
      queue->write(places[unit], memoryOf(slots[0]), sizes[unit]);
  wait(writing);
}

} // namespace accel::run
