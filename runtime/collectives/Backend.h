//===- Backend.h - Process groups -------------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A thin face of c10d's backends (Gloo, NCCL), so that only two files pay for
// their headers. Collectives are in place or between flat buffers, all sums.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_COLLECTIVES_BACKEND_H
#define ACCEL_RUNTIME_COLLECTIVES_BACKEND_H

#include <ATen/core/Tensor.h>

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace c10d {
class Backend;
class Store;
class Work;
} // namespace c10d

namespace accel::run {

class PeerMemory;

/// A collective failed: usually because a peer has gone, so that the cause is
/// elsewhere (Watchdog finds it).
struct CollectiveError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A started collective. Movable; `wait` once.
class Pending {
public:
  Pending();
  Pending(Pending &&);
  Pending &operator=(Pending &&);
  ~Pending();
  explicit Pending(c10::intrusive_ptr<c10d::Work> work);
  explicit Pending(std::vector<c10::intrusive_ptr<c10d::Work>> works);
  /// Gloo: blocks the caller. NCCL: the current stream waits. Throws
  /// CollectiveError.
  void wait();

private:
  std::vector<c10::intrusive_ptr<c10d::Work>> works;
};

/// The ranks of one group, as one of them sees it.
class Communicator {
public:
  /// Where a collective works: on the host's memory (Gloo), on the current
  /// stream (NCCL), or on a copy in the host's memory of what is on a GPU.
  enum class Way { Host, Stream, Staged, Lifted };
  Communicator(c10::intrusive_ptr<c10d::Backend> backend, Way way);
  ~Communicator();
  int rank() const;
  int size() const;
  /// Peers whose memory is read (PeerMemory).
  int peersRead() const;

  /// `output` holds size() pieces; `input` may be this rank's piece of it.
  Pending allGather(at::Tensor &output, at::Tensor &input);
  /// Piece i of `input` goes to rank i; `output` receives the pieces of the
  /// other ranks in their order, without one of this rank's own.
  Pending allToAll(at::Tensor &output, at::Tensor &input);
  /// The same with all pieces, those of this rank too.
  Pending exchangeParts(at::Tensor &output, at::Tensor &input);
  /// The same of parts of any size: `sent[i]` elements go to rank i, from which
  /// `received[i]` arrive.
  Pending exchangeUneven(at::Tensor &output, at::Tensor &input,
                         const std::vector<int64_t> &received,
                         const std::vector<int64_t> &sent);
  /// `input` goes to the rank `shift` behind this one, the last ones' to the
  /// first; `output` receives that of the rank `shift` before it.
  Pending permute(at::Tensor &output, at::Tensor &input, int shift);
  /// `output` may be this rank's piece of `input`.
  Pending reduceScatter(at::Tensor &output, at::Tensor &input);
  /// Sums, or maxima.
  Pending allReduce(at::Tensor &tensor, bool max = false);
  Pending broadcast(at::Tensor &tensor, int root);
  /// The k-th tensor that this rank sends to `peer` is the k-th that `peer`
  /// receives from it. The tensor is the caller's until the wait, which for
  /// NCCL has to be on the stream whose memory it is.
  Pending send(at::Tensor &tensor, int peer);
  Pending receive(at::Tensor &tensor, int peer);
  void barrier();
  /// Of Gloo: exchanges piece `sent(peer)` for piece `received(peer)` with
  /// every peer, straight from and into the tensors.
  Pending exchange(const char *what, const std::function<at::Tensor(int)> &sent,
                   const std::function<at::Tensor(int)> &received);

private:
  /// Runs `collective` on copies in the host's memory, to its end.
  Pending staged(at::Tensor &output, at::Tensor &input,
                 Pending (Communicator::*collective)(at::Tensor &,
                                                     at::Tensor &));
  /// The other way round.
  Pending lifted(at::Tensor &tensor,
                 const std::function<Pending(at::Tensor &)> &collective);

  c10::intrusive_ptr<c10d::Backend> backend;
  std::unique_ptr<PeerMemory> peers; // of Gloo
  int nextTag = 0;
  std::vector<int> sentTo, receivedFrom; // messages by peer
  Way way;
};

/// `Staged` is Gloo for tensors of a GPU: slow, and for tests, where NCCL has
/// no GPU for each rank.
/// `Lifted` is NCCL for a few numbers of the host.
enum class BackendKind { Gloo, Nccl, Staged, Lifted };
/// Whether this build has Gloo.
bool hasGloo();

/// A group as one of its ranks joins it.
struct GroupDescription {
  std::string name;         // purpose/axes, the same on all of its ranks
  int rank = 0;             // in the group
  std::vector<int> members; // their ranks among all, by rank in the group
  int size() const { return static_cast<int>(members.size()); }
};

/// Joins a group; every rank of it must. Throws CollectiveError, also where the
/// kind is not built in.
std::unique_ptr<Communicator> connect(BackendKind kind,
                                      const c10::intrusive_ptr<c10d::Store> &,
                                      const GroupDescription &group,
                                      bool localOnly);

/// How long a collective may take before the job ends.
std::chrono::seconds collectiveTimeout();
/// Another time than 600 s; before any group is joined.
void setCollectiveTimeout(std::chrono::seconds timeout);
/// The first line of an exception's message, without LibTorch's backtrace.
std::string plainMessage(const std::exception &error);

} // namespace accel::run

#endif // ACCEL_RUNTIME_COLLECTIVES_BACKEND_H
