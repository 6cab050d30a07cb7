//===- DriveQueueTest.cpp -------------------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Simulate/DriveQueue.h"

#include <gtest/gtest.h>

using namespace accel;
using namespace accel::plan;

namespace {

/// Three records of 2 to read and 3 to write; updates take 1.
struct DriveRun {
  explicit DriveRun(const Disk &disk, int64_t buffers)
      : queue({{2, 3}, {2, 3}, {2, 3}}, disk, buffers) {}
  /// When each update begins, if all gradients are there at `time`, and at last
  /// when the host goes on.
  std::vector<double> from(double time) {
    std::vector<double> begins;
    for (int i = 0; i < 3; ++i) {
      begins.push_back(queue.begin(time));
      time = queue.end(begins.back() + 1, begins.back() + 1);
    }
    begins.push_back(time);
    return begins;
  }
  DriveQueue queue;
};

TEST(DriveQueue, WithoutOverlapAllIsInTurn) {
  Disk disk;
  disk.readAhead = disk.writeBehind = false;
  EXPECT_EQ(DriveRun(disk, 1).from(10), (std::vector<double>{12, 18, 24, 28}));
}

TEST(DriveQueue, ReadsAreAheadOfUpdates) {
  Disk disk;
  disk.writeBehind = false;
  // The first record is read before the gradients come, the second beside the
  // first update; the host writes each.
  EXPECT_EQ(DriveRun(disk, 2).from(10), (std::vector<double>{10, 15, 20, 24}));
}

TEST(DriveQueue, WritesAreBehindThem) {
  const Disk disk;
  // The drive is done with the step before at 3, and with the first record at
  // 5. The second is read from 10 to 12, the first written to 15, the third
  // read to 17.
  EXPECT_EQ(DriveRun(disk, 3).from(10), (std::vector<double>{10, 12, 17, 18}));
  // The drive is not idle before.
  EXPECT_EQ(DriveRun(disk, 3).from(0), (std::vector<double>{5, 7, 12, 13}));
}

TEST(DriveQueue, NothingIsReadWithoutABuffer) {
  Disk disk;
  disk.readAhead = false;
  // Two buffers: the third update waits until the first is written.
  DriveRun run(disk, 2);
  EXPECT_EQ(run.from(10), (std::vector<double>{12, 18, 24, 25}));
}

} // namespace
