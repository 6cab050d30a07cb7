//===- disk_rates.cpp - What a rank's file of states reads and writes -----===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// disk-rates FOLDER MIB [auto|io_uring|threads [DEPTH-OR-THREADS]]: writes a
// file of so many MiB and reads it, as accel-run does records of units of 64
// MiB, two at once, and prints bytes per second. Start as many as ranks for a
// target's `drive`.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/DiskLayout.h"
#include "runtime/storage/TransferQueue.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

using namespace accel;
using namespace accel::run;

int main(int argc, char **argv) {
  if (argc < 3) {
    std::fprintf(stderr, "disk-rates FOLDER MIB [auto|io_uring|threads "
                         "[DEPTH-OR-THREADS]]\n");
    return 64;
  }
  QueueSettings settings;
  const std::string io = argc > 3 ? argv[3] : "auto";
  settings.io = io == "io_uring"  ? DiskIo::Uring
                : io == "threads" ? DiskIo::Threads
                                  : DiskIo::Auto;
  if (argc > 4)
    settings.depth = settings.threads = std::atoll(argv[4]);
  constexpr int64_t record = int64_t(64) << 20;
  const int64_t records = std::max<int64_t>(1, std::atoll(argv[2]) / 64);
  try {
    const ScratchFile file(argv[1], 0, records * record);
    std::unique_ptr<char, decltype(&std::free)> memory(
        static_cast<char *>(
            std::aligned_alloc(plan::diskAlignment, 2 * record)),
        &std::free);
    std::memset(memory.get(), 1, 2 * record);
    auto queue = TransferQueue::make(file, settings);
    std::printf("%s%s", queue->name(), file.isDirect() ? "" : ", cached");
    for (const bool writes : {true, false}) {
      const auto start = std::chrono::steady_clock::now();
      TransferQueue::Ticket tickets[2];
      for (int64_t i = 0; i < records; ++i) {
        char *own = memory.get() + i % 2 * record;
        queue->wait(tickets[i % 2]);
        tickets[i % 2] = writes ? queue->write(i * record, own, record)
                                : queue->read(i * record, own, record);
      }
      for (TransferQueue::Ticket &ticket : tickets)
        queue->wait(ticket);
      const double seconds = std::chrono::duration<double>(
                                 std::chrono::steady_clock::now() - start)
                                 .count();
      std::printf(", %s %.3g bytes/s", writes ? "written" : "read",
                  static_cast<double>(records * record) / seconds);
    }
    std::printf("\n");
  } catch (const std::exception &failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
  return 0;
}
