//===- TransferQueue.h - Reads and writes behind a rank ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Reads and writes of a file that go on while the rank's thread does something
// else. Each is cut into blocks; several are under way at once. Two kinds: the
// kernel's io_uring, to which one thread gives blocks and takes them back, and
// threads that call pread and pwrite, where there is no io_uring: containers
// often forbid it, and accel-opt is built without liburing where that is
// missing.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_STORAGE_TRANSFERQUEUE_H
#define ACCEL_RUNTIME_STORAGE_TRANSFERQUEUE_H

#include "runtime/storage/ScratchFile.h"

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

namespace accel::run {

/// Auto: io_uring where it works, else threads.
enum class DiskIo { Auto, Uring, Threads };

struct QueueSettings {
  DiskIo io = DiskIo::Auto;
  int64_t blockBytes = 1 << 20;
  int64_t depth = 32;  // blocks at once, of io_uring
  int64_t threads = 4; // else
};

class TransferQueue {
public:
  /// `file` outlives it. Throws FileError where io_uring is asked for by name
  /// and does not work.
  static std::unique_ptr<TransferQueue> make(const ScratchFile &file,
                                             const QueueSettings &settings);
  /// Waits for what is under way.
  virtual ~TransferQueue() = default;
  TransferQueue(const TransferQueue &) = delete;
  TransferQueue &operator=(const TransferQueue &) = delete;

  struct Transfer;
  using Ticket = std::shared_ptr<Transfer>;
  /// The memory is the queue's until `wait`.
  Ticket read(int64_t offset, void *into, int64_t bytes);
  Ticket write(int64_t offset, const void *from, int64_t bytes);
  /// Waits until it is done and forgets the ticket; null is done. Throws
  /// FileError where it failed.
  void wait(Ticket &ticket);
  /// "io_uring" or "threads".
  virtual const char *name() const = 0;

protected:
  struct Block {
    Ticket of;
    int64_t offset = 0;
    char *memory = nullptr;
    int64_t bytes = 0;
  };

  TransferQueue(const ScratchFile &file, int64_t blockBytes)
      : file(file), blockBytes(blockBytes) {}
  /// Threads of queues: the next block, or nothing once `stop` was called;
  /// `waits` false: or where there is none. Under the lock.
  bool take(Block &block, std::unique_lock<std::mutex> &lock, bool waits);
  /// `code` is an errno; -1: the file has ended. Takes the lock.
  void finish(const Block &block, int code);
  static bool writes(const Block &block);
  void stop();

  const ScratchFile &file;
  std::mutex mutex;

private:
  Ticket start(bool writes, int64_t offset, char *memory, int64_t bytes);

  const int64_t blockBytes;
  std::deque<Block> blocks;
  bool stopping = false;
  std::condition_variable work, done;
};

/// Null with the reason in `why` where io_uring does not work, or accel-run was
/// built without liburing.
std::unique_ptr<TransferQueue> makeUringQueue(const ScratchFile &file,
                                              const QueueSettings &settings,
                                              std::string &why);

} // namespace accel::run

#endif // ACCEL_RUNTIME_STORAGE_TRANSFERQUEUE_H
