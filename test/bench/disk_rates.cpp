//===- disk_rates.cpp - What a rank's file of states reads and writes -----===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// disk-rates FOLDER MIB [auto|io_uring|threads [DEPTH-OR-THREADS]]: bytes per
// second of a file of so many MiB. accel-run --fit measures the same for a
// plan; this compares kinds of transfers.
//
//===----------------------------------------------------------------------===//
#include "runtime/storage/DriveRates.h"

#include <cstdio>
#include <cstdlib>
#include <exception>

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
  try {
    const DriveRates rates =
        measureDrive(argv[1], 0, std::atoll(argv[2]) << 20, settings);
    std::printf("%s%s, written %.3g bytes/s, read %.3g bytes/s\n",
                rates.io.c_str(), rates.direct ? "" : ", cached", rates.written,
                rates.read);
  } catch (const std::exception &failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
  return 0;
}
