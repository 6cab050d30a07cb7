//===- UringQueue.cpp - Transfers by io_uring -----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/storage/TransferQueue.h"

#ifdef ACCEL_LIBURING

#include <liburing.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

namespace accel::run {

namespace {

/// One thread owns the ring: it gives the kernel as many blocks as fit and
/// takes them back as they end.
class UringQueue final : public TransferQueue {
public:
  UringQueue(const ScratchFile &file, const QueueSettings &settings,
             const io_uring &ring)
      : TransferQueue(file, settings.blockBytes), ring(ring),
        slots(static_cast<size_t>(settings.depth)), thread([this] { run(); }) {}
  ~UringQueue() override {
    stop();
    thread.join();
    io_uring_queue_exit(&ring);
  }
  const char *name() const override { return "io_uring"; }

private:
  struct Slot {
    Block block;
    int64_t done = 0; // bytes
    bool busy = false;
  };

  void run() {
    while (fill())
      takeBack();
  }
  /// False at the end, with nothing under way.
  bool fill() {
    for (Slot &slot : slots) {
      if (slot.busy)
        continue;
      {
        std::unique_lock lock(mutex);
        if (!take(slot.block, lock, /*waits=*/busy == 0))
          break;
      }
      slot.busy = true;
      slot.done = 0;
      ++busy;
      submit(slot);
    }
    return busy > 0;
  }
  void submit(Slot &slot) {
    io_uring_sqe *entry = io_uring_get_sqe(&ring); // as many as slots
    const Block &block = slot.block;
    const auto rest = static_cast<unsigned>(block.bytes - slot.done);
    const auto at = static_cast<uint64_t>(block.offset + slot.done);
    if (writes(block))
      io_uring_prep_write(entry, file.descriptor(), block.memory + slot.done,
                          rest, at);
    else
      io_uring_prep_read(entry, file.descriptor(), block.memory + slot.done,
                         rest, at);
    io_uring_sqe_set_data(entry, &slot);
    int code = 0;
    do
      code = io_uring_submit(&ring);
    while (code == -EINTR || code == -EAGAIN);
    if (code < 0)
      end(slot, -code);
  }
  void takeBack() {
    io_uring_cqe *entry = nullptr;
    const int code = io_uring_wait_cqe(&ring, &entry);
    if (code < 0) // -EINTR
      return;
    Slot &slot = *static_cast<Slot *>(io_uring_cqe_get_data(entry));
    const int result = entry->res;
    io_uring_cqe_seen(&ring, entry);
    if (result == -EINTR || result == -EAGAIN)
      return submit(slot);
    if (result < 0)
      return end(slot, -result);
    if (result == 0)
      return end(slot, writes(slot.block) ? ENOSPC : -1);
    slot.done += result;
    if (slot.done < slot.block.bytes)
      return submit(slot);
    end(slot, 0);
  }
  void end(Slot &slot, int code) {
    finish(slot.block, code);
    slot.block = {};
    slot.busy = false;
    --busy;
  }

  io_uring ring;
  std::vector<Slot> slots;
  size_t busy = 0;
  std::thread thread; // the last: it uses what stands before it
};

} // namespace

std::unique_ptr<TransferQueue> makeUringQueue(const ScratchFile &file,
                                              const QueueSettings &settings,
                                              std::string &why) {
  io_uring ring = {};
  const int code =
      io_uring_queue_init(static_cast<unsigned>(settings.depth), &ring, 0);
  if (code < 0) {
    why = std::string("the kernel refuses it (") + std::strerror(-code) + ")";
    return nullptr;
  }
  // Reads and writes without vectors came a year after the first ring.
  io_uring_probe *probe = io_uring_get_probe_ring(&ring);
  const bool known = probe &&
                     io_uring_opcode_supported(probe, IORING_OP_READ) &&
                     io_uring_opcode_supported(probe, IORING_OP_WRITE);
  if (probe)
    io_uring_free_probe(probe);
  if (!known) {
    io_uring_queue_exit(&ring);
    why = "the kernel is older than Linux 5.6";
    return nullptr;
  }
  return std::make_unique<UringQueue>(file, settings, ring);
}

} // namespace accel::run

#else

namespace accel::run {

std::unique_ptr<TransferQueue>
makeUringQueue(const ScratchFile &, const QueueSettings &, std::string &why) {
  why = "accel-run was built without liburing";
  return nullptr;
}

} // namespace accel::run

#endif
