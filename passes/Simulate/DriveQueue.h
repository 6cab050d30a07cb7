//===- DriveQueue.h - When a drive reads and writes states ------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The updates of a step where states are on a disk (plan::Disk), in any unit of
// time, as runtime/execute/DiskStates does them: an update waits for its
// unit's record, and what is to be read next waits for a buffer whose record is
// written and copied. Reads and writes take turns at the drive. A step starts
// as the one before it ends: that one's last record is being written, and those
// that are read ahead come next.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_SIMULATE_DRIVEQUEUE_H
#define ACCEL_PASSES_SIMULATE_DRIVEQUEUE_H

#include "runtime/plan/DiskLayout.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace accel {

/// Seconds of a record; 0 where the target does not know its drive.
inline double driveSeconds(double bytes, double bytesPerSecond) {
  return bytesPerSecond > 0 ? bytes / bytesPerSecond : 0;
}

class DriveQueue {
public:
  struct Record {
    double read = 0, write = 0; // how long each takes
  };
  /// What the drive has done: the record's number, and when.
  struct Transfer {
    size_t record = 0;
    bool writes = false;
    double begin = 0, end = 0;
  };
  std::vector<Transfer> transfers;
  /// `records` in the order of their updates.
  DriveQueue(std::vector<Record> records, const plan::Disk &disk,
             int64_t buffers)
      : records(std::move(records)), writesBehind(disk.writeBehind),
        buffers(static_cast<size_t>(std::max<int64_t>(buffers, 1))),
        ahead(static_cast<size_t>(plan::readAhead(disk, buffers))),
        ready(this->records.size()), free(this->records.size()) {
    if (this->records.empty())
      return;
    if (writesBehind)
      transfer(this->records.size() - 1, true, 0);
    read(ahead, 0);
  }

  /// When the next update can begin that is not held up otherwise after `time`.
  double begin(double time) {
    if (next >= records.size())
      return time;
    time = read(next + 1, time);
    return read(next + 1 + ahead, std::max(time, ready[next]));
  }
  /// The same of what follows an update that is done at `time` and on the
  /// device at `copied`.
  double end(double time, double copied) {
    if (next >= records.size())
      return time;
    transfer(next, true, time);
    free[next] = std::max(drive, copied);
    ++next;
    return writesBehind ? time : std::max(time, drive);
  }

private:
  void transfer(size_t record, bool writes, double after) {
    const double begin = std::max(drive, after);
    drive = begin + (writes ? records[record].write : records[record].read);
    transfers.push_back({record, writes, begin, drive});
  }
  /// Starts to read all records before `end`; when the host goes on, which has
  /// waited for their buffers.
  double read(size_t end, double time) {
    for (; started < std::min(end, records.size()); ++started) {
      if (started >= buffers)
        time = std::max(time, free[started - buffers]);
      transfer(started, false, time);
      ready[started] = drive;
    }
    return time;
  }

  std::vector<Record> records;
  bool writesBehind;
  size_t buffers, ahead;
  std::vector<double> ready, free; // by record: read; its buffer is
  size_t next = 0, started = 0;
  double drive = 0; // is free
};

} // namespace accel

#endif // ACCEL_PASSES_SIMULATE_DRIVEQUEUE_H
