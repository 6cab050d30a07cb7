//===- DriveRates.cpp - How fast a rank's file is -------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/storage/DriveRates.h"

#include "runtime/plan/DiskLayout.h"
#include "runtime/storage/FileError.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace accel::run {

DriveRates measureDrive(const std::string &folder, int rank, int64_t bytes,
                        const QueueSettings &settings) {
  constexpr int64_t record = int64_t(64) << 20;
  const int64_t records = std::max<int64_t>(2, bytes / record);
  const ScratchFile file(folder, rank, records * record);
  const std::unique_ptr<char, decltype(&std::free)> memory(
      static_cast<char *>(std::aligned_alloc(plan::diskAlignment, 2 * record)),
      &std::free);
  if (!memory)
    throw FileError(file.path() + ": no memory to measure with");
  std::memset(memory.get(), 1, 2 * record);
  auto queue = TransferQueue::make(file, settings);
  DriveRates rates;
  rates.io = queue->name();
  rates.direct = file.isDirect();
  for (double *rate : {&rates.written, &rates.read}) {
    const auto start = std::chrono::steady_clock::now();
    TransferQueue::Ticket tickets[2];
    for (int64_t i = 0; i < records; ++i) {
      char *own = memory.get() + i % 2 * record;
      queue->wait(tickets[i % 2]);
      tickets[i % 2] = rate == &rates.written
                           ? queue->write(i * record, own, record)
                           : queue->read(i * record, own, record);
    }
    for (TransferQueue::Ticket &ticket : tickets)
      queue->wait(ticket);
    *rate =
        static_cast<double>(records * record) /
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
  }
  return rates;
}

} // namespace accel::run
