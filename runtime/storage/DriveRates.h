//===- DriveRates.h - How fast a rank's file is -----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_STORAGE_DRIVERATES_H
#define ACCEL_RUNTIME_STORAGE_DRIVERATES_H

#include "runtime/storage/TransferQueue.h"

namespace accel::run {

/// Bytes per second, and how they were moved.
struct DriveRates {
  double read = 0, written = 0;
  std::string io; // TransferQueue::name
  bool direct = false;
};

/// Writes a file of about `bytes` in `folder` and reads it, 64 MiB at a time
/// and the next beside them, as states are beside updates. Throws FileError.
DriveRates measureDrive(const std::string &folder, int rank, int64_t bytes,
                        const QueueSettings &settings);

} // namespace accel::run

#endif // ACCEL_RUNTIME_STORAGE_DRIVERATES_H
