//===- TransferQueue.cpp - Reads and writes behind a rank -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/storage/TransferQueue.h"

#include "runtime/storage/FileError.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <unistd.h>
#include <vector>

namespace accel::run {

struct TransferQueue::Transfer {
  bool writes = false;
  int64_t blocks = 0;  // that are not done
  std::string failure; // of the first block that failed
};

TransferQueue::Ticket TransferQueue::start(bool writes, int64_t offset,
                                           char *memory, int64_t bytes) {
  auto ticket = std::make_shared<Transfer>();
  ticket->writes = writes;
  {
    const std::lock_guard lock(mutex);
    for (int64_t at = 0; at < bytes; at += blockBytes) {
      ++ticket->blocks;
      blocks.push_back(
          {ticket, offset + at, memory + at, std::min(blockBytes, bytes - at)});
    }
  }
  work.notify_all();
  return ticket;
}

TransferQueue::Ticket TransferQueue::read(int64_t offset, void *into,
                                          int64_t bytes) {
  return start(false, offset, static_cast<char *>(into), bytes);
}

TransferQueue::Ticket TransferQueue::write(int64_t offset, const void *from,
                                           int64_t bytes) {
  // Blocks of both kinds have one type; a write changes no memory.
  return start(true, offset, static_cast<char *>(const_cast<void *>(from)),
               bytes);
}

void TransferQueue::wait(Ticket &ticket) {
  if (!ticket)
    return;
  const Ticket awaited = std::move(ticket);
  ticket.reset();
  std::unique_lock lock(mutex);
  done.wait(lock, [&] { return awaited->blocks == 0; });
  if (!awaited->failure.empty())
    throw FileError(awaited->failure);
}

bool TransferQueue::take(Block &block, std::unique_lock<std::mutex> &lock,
                         bool waits) {
  if (waits)
    work.wait(lock, [&] { return stopping || !blocks.empty(); });
  if (blocks.empty())
    return false;
  block = std::move(blocks.front());
  blocks.pop_front();
  return true;
}

void TransferQueue::finish(const Block &block, int code) {
  {
    const std::lock_guard lock(mutex);
    Transfer &of = *block.of;
    if (code != 0 && of.failure.empty())
      of.failure = file.path() + ": cannot " +
                   (of.writes ? "write " : "read ") +
                   std::to_string(block.bytes) + " bytes at " +
                   std::to_string(block.offset) + ": " +
                   (code < 0 ? "the file ends before" : std::strerror(code));
    --of.blocks;
  }
  done.notify_all();
}

bool TransferQueue::writes(const Block &block) { return block.of->writes; }

void TransferQueue::stop() {
  {
    const std::lock_guard lock(mutex);
    stopping = true;
  }
  work.notify_all();
}

namespace {

class ThreadQueue final : public TransferQueue {
public:
  ThreadQueue(const ScratchFile &file, const QueueSettings &settings)
      : TransferQueue(file, settings.blockBytes) {
    try {
      for (int64_t i = 0; i < std::max<int64_t>(settings.threads, 1); ++i)
        threads.emplace_back([this] { run(); });
    } catch (...) {
      join(); // those that have been started
      throw;
    }
  }
  ~ThreadQueue() override { join(); }
  const char *name() const override { return "threads"; }

private:
  void join() {
    stop();
    for (std::thread &thread : threads)
      thread.join();
  }
  void run() {
    while (true) {
      Block block;
      {
        std::unique_lock lock(mutex);
        if (!take(block, lock, /*waits=*/true))
          return;
      }
      finish(block, transfer(block));
    }
  }
  int transfer(const Block &block) const {
    for (int64_t at = 0; at < block.bytes;) {
      const auto rest = static_cast<size_t>(block.bytes - at);
      const ssize_t n = writes(block)
                            ? pwrite(file.descriptor(), block.memory + at, rest,
                                     block.offset + at)
                            : pread(file.descriptor(), block.memory + at, rest,
                                    block.offset + at);
      if (n < 0 && errno == EINTR)
        continue;
      if (n < 0)
        return errno;
      if (n == 0)
        return writes(block) ? ENOSPC : -1;
      at += n;
    }
    return 0;
  }

  std::vector<std::thread> threads;
};

} // namespace

std::unique_ptr<TransferQueue>
TransferQueue::make(const ScratchFile &file, const QueueSettings &settings) {
  if (settings.io != DiskIo::Threads) {
    std::string why;
    if (auto queue = makeUringQueue(file, settings, why))
      return queue;
    if (settings.io == DiskIo::Uring)
      throw FileError("io_uring does not work here: " + why +
                      "; --disk-io threads needs none");
  }
  return std::make_unique<ThreadQueue>(file, settings);
}

} // namespace accel::run
