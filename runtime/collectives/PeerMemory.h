//===- PeerMemory.h - Pieces read from the memory of a peer -----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Ranks of one machine that exchange tensors of the host by Gloo send them
// through the loopback device: into the kernel, through TCP and out again, by
// threads that wait for one another's locks. Here a rank tells where a piece
// lies, and the receiver reads it there by one copy of the kernel
// (process_vm_readv(2)), as MPI's and UCX's cross-memory attach does.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_COLLECTIVES_PEERMEMORY_H
#define ACCEL_RUNTIME_COLLECTIVES_PEERMEMORY_H

#include <ATen/core/Tensor.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace c10d {
class Backend;
class Work;
} // namespace c10d

namespace accel::run {

/// Bytes of a piece from which on groups that are made from now on read it;
/// below the default of 64 KiB a message of the group is as quick. 0: none is.
void setLeastPeerBytes(int64_t bytes);

class PeerMemory {
public:
  using Work = c10::intrusive_ptr<c10d::Work>;

  /// Every rank of `group` (Gloo) must make one. Asks which peers this rank can
  /// read; what others have for it is sent by the group, and so are pieces of
  /// fewer bytes than are set. A wait of longer than `timeout` fails.
  PeerMemory(c10::intrusive_ptr<c10d::Backend> group,
             std::chrono::seconds timeout);
  /// What is still expected fails.
  ~PeerMemory();

  /// `piece` goes to `peer`; its memory stays as it is until the work is done.
  /// Tags tell messages of the group apart that are on their way at once.
  Work send(const at::Tensor &piece, int peer, int tag);
  /// The k-th piece from `peer` is the k-th that it sends, and of that size.
  Work receive(const at::Tensor &into, int peer, int tag);

  /// Peers whose memory this rank reads.
  int peersRead() const;

private:
  struct Place;
  struct Channel;
  struct Lent;
  struct Read;

  void meet();
  void tell(const std::function<at::Tensor(int)> &sent,
            const std::function<at::Tensor(int)> &received);
  void readAll();

  c10::intrusive_ptr<c10d::Backend> group;
  std::chrono::seconds timeout;
  /// By rank: of the pieces that it reads here, and that this rank reads there;
  /// null where the group sends them.
  std::vector<std::shared_ptr<Channel>> lends, reads;
  std::mutex mutex; // of what follows
  std::condition_variable changed;
  std::deque<c10::intrusive_ptr<Read>> expected;
  bool ends = false;
  std::thread reader;
};

} // namespace accel::run

#endif // ACCEL_RUNTIME_COLLECTIVES_PEERMEMORY_H
