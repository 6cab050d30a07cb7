//===- Backend.cpp - Process groups ---------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/collectives/Backend.h"

#include "runtime/collectives/CudaModule.h"
#include "runtime/collectives/PeerMemory.h"
#include "runtime/collectives/Progress.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#ifdef USE_C10D_GLOO
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#endif

#include <cstdlib>
#include <new>
#include <numeric>
#include <system_error>

namespace accel::run {

std::string plainMessage(const std::exception &error) {
  std::string text = error.what();
  if (auto *torchError = dynamic_cast<const c10::Error *>(&error))
    text = torchError->what_without_backtrace();
  const auto *ofSystem = dynamic_cast<const std::system_error *>(&error);
  if (ofSystem && ofSystem->code() == std::errc::resource_unavailable_try_again)
    text = "a thread cannot be started: " + text +
           "; the limits of processes and of memory (ulimit -u, ulimit -v, a "
           "container's) are too low";
  return text.substr(0, text.find('\n'));
}

namespace {
/// Gives the errors of collectives our type. Memory that is missing on this
/// rank is no other rank's fault.
[[noreturn]] void failed(const std::string &what, const std::exception &error) {
  const std::string reason = plainMessage(error);
  const std::string text = what.empty() ? reason : what + ": " + reason;
  if (dynamic_cast<const std::bad_alloc *>(&error) ||
      reason.find("out of memory") != std::string::npos)
    throw std::runtime_error(text);
  throw CollectiveError(text);
}

/// The watch knows more of a hang than the libraries do, and comes first.
std::chrono::seconds libraryTimeout() {
  return 2 * collectiveTimeout() + std::chrono::seconds(60);
}

/// Starts a collective.
template <typename Start> Pending started(const char *what, Start &&start) {
  try {
    return Pending(start());
  } catch (const std::exception &error) {
    failed(what, error);
  }
}
} // namespace

Pending::Pending() = default;
Pending::Pending(Pending &&) = default;
Pending &Pending::operator=(Pending &&) = default;
Pending::~Pending() = default;
Pending::Pending(c10::intrusive_ptr<c10d::Work> work) {
  if (work)
    works.push_back(std::move(work));
}
Pending::Pending(std::vector<c10::intrusive_ptr<c10d::Work>> works)
    : works(std::move(works)) {}

void Pending::wait() {
  auto finished = std::move(works);
  works.clear();
  Progress::Waiting waiting;
  try {
    for (auto &work : finished)
      work->wait();
  } catch (const std::exception &error) {
    failed("", error);
  }
}

Communicator::Communicator(c10::intrusive_ptr<c10d::Backend> made, Way way)
    : backend(std::move(made)), way(way) {
  if (way == Way::Host || way == Way::Staged)
    peers = std::make_unique<PeerMemory>(backend, libraryTimeout());
}
Communicator::~Communicator() {
  // NCCL's group would be aborted otherwise, with a warning.
  if ((way == Way::Stream || way == Way::Lifted) && backend)
    backend->shutdown();
}
int Communicator::rank() const { return backend->getRank(); }
int Communicator::size() const { return backend->getSize(); }
int Communicator::peersRead() const { return peers ? peers->peersRead() : 0; }

Pending Communicator::exchange(const char *what,
                               const std::function<at::Tensor(int)> &sent,
                               const std::function<at::Tensor(int)> &received) {
  // The same order of collectives on every rank gives the same tags.
  int tag = nextTag;
  nextTag = (nextTag + 1) & 0xffffff;
  std::vector<c10::intrusive_ptr<c10d::Work>> works;
  try {
    for (int step = 1; step < size(); ++step) {
      int from = (rank() - step + size()) % size();
      const at::Tensor piece = received(from);
      if (piece.numel() != 0)
        works.push_back(peers->receive(piece, from, tag));
    }
    for (int step = 1; step < size(); ++step) {
      int to = (rank() + step) % size();
      const at::Tensor piece = sent(to);
      if (piece.numel() != 0)
        works.push_back(peers->send(piece, to, tag));
    }
  } catch (const std::exception &error) {
    failed(what, error);
  }
  return Pending(std::move(works));
}

// Gloo's own all-gather and all-to-all stage their data in a fresh buffer on a
// worker thread and copy it; point-to-point messages need neither.
// `_allgather_base` and `_reduce_scatter_base` are the names that torch 2.11
// and 2.15 both have.
Pending Communicator::staged(
    at::Tensor &output, at::Tensor &input,
    Pending (Communicator::*collective)(at::Tensor &, at::Tensor &)) {
  at::Tensor from = input.to(at::kCPU);
  at::Tensor to = at::empty(output.sizes(), from.options());
  way = Way::Host;
  (this->*collective)(to, from).wait();
  way = Way::Staged;
  output.copy_(to);
  return Pending();
}

/// A collective of a tensor of the host, on the device.
Pending
Communicator::lifted(at::Tensor &tensor,
                     const std::function<Pending(at::Tensor &)> &collective) {
  at::Tensor onDevice = tensor.to(at::kCUDA);
  way = Way::Stream;
  Pending pending = collective(onDevice);
  way = Way::Lifted;
  pending.wait();
  Progress::Waiting waiting;
  tensor.copy_(onDevice);
  return Pending();
}

Pending Communicator::allGather(at::Tensor &output, at::Tensor &input) {
  if (way == Way::Lifted)
    return lifted(output, [&](at::Tensor &all) {
      at::Tensor own = input.to(at::kCUDA);
      return allGather(all, own);
    });
  if (way == Way::Staged)
    return staged(output, input, &Communicator::allGather);
  if (way == Way::Host) {
    int64_t piece = output.numel() / size();
    auto at = [&](int rank) { return output.narrow(0, rank * piece, piece); };
    if (input.data_ptr() != at(rank()).data_ptr())
      at(rank()).copy_(input);
    return exchange("all-gather", [&](int) { return at(rank()); }, at);
  }
  c10d::AllgatherOptions options;
  options.asyncOp = false;
  return started("all-gather", [&] {
    return backend->_allgather_base(output, input, options);
  });
}

Pending Communicator::allToAll(at::Tensor &output, at::Tensor &input) {
  int64_t piece = input.numel() / size();
  if (way != Way::Host)
    throw CollectiveError("all-to-all: GPUs reduce directly");
  return exchange(
      "all-to-all", [&](int to) { return input.narrow(0, to * piece, piece); },
      [&](int from) {
        return output.narrow(0, (from - (from > rank())) * piece, piece);
      });
}

Pending Communicator::exchangeParts(at::Tensor &output, at::Tensor &input) {
  if (way == Way::Staged)
    return staged(output, input, &Communicator::exchangeParts);
  if (way == Way::Host) {
    const int64_t piece = input.numel() / size();
    auto at = [&](at::Tensor &tensor, int rank) {
      return tensor.narrow(0, rank * piece, piece);
    };
    at(output, rank()).copy_(at(input, rank()));
    return exchange(
        "all-to-all", [&](int to) { return at(input, to); },
        [&](int from) { return at(output, from); });
  }
  c10d::AllToAllOptions options;
  options.asyncOp = false;
  std::vector<int64_t> equal; // parts
  return started("all-to-all", [&] {
    return backend->alltoall_base(output, input, equal, equal, options);
  });
}

Pending Communicator::exchangeUneven(at::Tensor &output, at::Tensor &input,
                                     const std::vector<int64_t> &received,
                                     const std::vector<int64_t> &sent) {
  if (way == Way::Staged) {
    at::Tensor from = input.to(at::kCPU);
    at::Tensor to = at::empty(output.sizes(), from.options());
    way = Way::Host;
    exchangeUneven(to, from, received, sent).wait();
    way = Way::Staged;
    output.copy_(to);
    return Pending();
  }
  if (way == Way::Host) {
    auto part = [](at::Tensor &tensor, const std::vector<int64_t> &sizes,
                   int rank) {
      return tensor.narrow(
          0, std::accumulate(sizes.begin(), sizes.begin() + rank, int64_t(0)),
          sizes[rank]);
    };
    part(output, received, rank()).copy_(part(input, sent, rank()));
    return exchange(
        "all-to-all", [&](int to) { return part(input, sent, to); },
        [&](int from) { return part(output, received, from); });
  }
  c10d::AllToAllOptions options;
  options.asyncOp = false;
  std::vector<int64_t> into = received, from = sent;
  return started("all-to-all", [&] {
    return backend->alltoall_base(output, input, into, from, options);
  });
}

Pending Communicator::permute(at::Tensor &output, at::Tensor &input,
                              int shift) {
  const int to = (rank() + shift) % size(),
            from = (rank() - shift + size()) % size();
  if (way == Way::Staged) {
    at::Tensor sent = input.to(at::kCPU);
    at::Tensor received = at::empty(output.sizes(), sent.options());
    way = Way::Host;
    permute(received, sent, shift).wait();
    way = Way::Staged;
    output.copy_(received);
    return Pending();
  }
  if (way == Way::Host) {
    const int tag = nextTag;
    nextTag = (nextTag + 1) & 0xffffff;
    std::vector<c10::intrusive_ptr<c10d::Work>> works;
    try {
      works.push_back(peers->receive(output, from, tag));
      works.push_back(peers->send(input, to, tag));
    } catch (const std::exception &error) {
      failed("permute", error);
    }
    return Pending(std::move(works));
  }
  c10d::AllToAllOptions options;
  options.asyncOp = false;
  std::vector<int64_t> sent(size()), received(size());
  sent[to] = input.size(0);
  received[from] = output.size(0);
  return started("permute", [&] {
    return backend->alltoall_base(output, input, received, sent, options);
  });
}

Pending Communicator::reduceScatter(at::Tensor &output, at::Tensor &input) {
  if (way == Way::Staged)
    return staged(output, input, &Communicator::reduceScatter);
  c10d::ReduceScatterOptions options;
  options.asyncOp = way != Way::Stream;
  return started("reduce-scatter", [&] {
    return backend->_reduce_scatter_base(output, input, options);
  });
}

Pending Communicator::allReduce(at::Tensor &tensor, bool max) {
  if (way == Way::Lifted)
    return lifted(tensor, [&](at::Tensor &all) { return allReduce(all, max); });
  if (way == Way::Staged) {
    at::Tensor copy = tensor.to(at::kCPU);
    way = Way::Host;
    allReduce(copy, max).wait();
    way = Way::Staged;
    tensor.copy_(copy);
    return Pending();
  }
  c10d::AllreduceOptions options;
  options.reduceOp = max ? c10d::ReduceOp::MAX : c10d::ReduceOp::SUM;
  options.asyncOp = way != Way::Stream;
  std::vector<at::Tensor> tensors{tensor};
  return started("all-reduce",
                 [&] { return backend->allreduce(tensors, options); });
}

Pending Communicator::broadcast(at::Tensor &tensor, int root) {
  if (way == Way::Lifted)
    return lifted(tensor,
                  [&](at::Tensor &all) { return broadcast(all, root); });
  c10d::BroadcastOptions options;
  options.rootRank = root;
  options.asyncOp = way != Way::Stream;
  std::vector<at::Tensor> tensors{tensor};
  return started("broadcast",
                 [&] { return backend->broadcast(tensors, options); });
}

/// The same elements, not as the allocator's own. NCCL's backend sends and
/// receives on a stream of its own and tells the allocator of it
/// (`recordStream`), which then gives freed bytes out again only when the host
/// has seen that stream pass; a host that is ahead of its GPU sees that late,
/// so that messages would pile up. Whoever sends or receives waits for the end
/// on the stream whose memory it is, and holds the tensor until then, so the
/// order of streams is enough.
static at::Tensor unrecorded(const at::Tensor &tensor) {
  return at::for_blob(tensor.data_ptr(), tensor.sizes())
      .strides(tensor.strides())
      .options(tensor.options())
      .target_device(tensor.device())
      .make_tensor();
}

Pending Communicator::send(at::Tensor &tensor, int peer) {
  sentTo.resize(size());
  const int tag = sentTo[peer];
  sentTo[peer] = (tag + 1) & 0xffffff;
  std::vector<at::Tensor> tensors{way == Way::Staged   ? tensor.to(at::kCPU)
                                  : way == Way::Stream ? unrecorded(tensor)
                                                       : tensor};
  return started("send", [&] {
    return peers ? peers->send(tensors[0], peer, tag)
                 : backend->send(tensors, peer, tag);
  });
}

Pending Communicator::receive(at::Tensor &tensor, int peer) {
  receivedFrom.resize(size());
  const int tag = receivedFrom[peer];
  receivedFrom[peer] = (tag + 1) & 0xffffff;
  at::Tensor into =
      way == Way::Staged
          ? at::empty(tensor.sizes(), tensor.options().device(at::kCPU))
      : way == Way::Stream ? unrecorded(tensor)
                           : tensor;
  std::vector<at::Tensor> tensors{into};
  Pending pending = started("receive", [&] {
    return peers ? peers->receive(into, peer, tag)
                 : backend->recv(tensors, peer, tag);
  });
  if (way != Way::Staged)
    return pending;
  pending.wait();
  tensor.copy_(into);
  return Pending();
}

void Communicator::barrier() {
  if (way == Way::Lifted) { // the sum is there when all ranks are
    at::Tensor none = at::zeros({1});
    allReduce(none).wait();
    return;
  }
  started("barrier", [&] { return backend->barrier(); }).wait();
}

namespace {
#ifdef USE_C10D_GLOO
c10::intrusive_ptr<c10d::Backend>
makeGloo(const c10::intrusive_ptr<c10d::Store> &store,
         const GroupDescription &group, bool localOnly) {
  auto options = c10d::ProcessGroupGloo::Options::create();
  options->timeout = libraryTimeout();
  const char *interface = std::getenv("GLOO_SOCKET_IFNAME");
  options->devices.push_back(
      interface && *interface ? c10d::ProcessGroupGloo::
                                    createDeviceForInterface(interface)
      : localOnly ? c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")
                  : c10d::ProcessGroupGloo::createDefaultDevice());
  options->threads = 2;
  return c10::make_intrusive<c10d::ProcessGroupGloo>(store, group.rank,
                                                     group.size(), options);
}
#endif
} // namespace

bool hasGloo() {
#ifdef USE_C10D_GLOO
  return true;
#else
  return false;
#endif
}

static std::chrono::seconds timeoutOfAll{600};

void setCollectiveTimeout(std::chrono::seconds timeout) {
  timeoutOfAll = timeout;
}

std::chrono::seconds collectiveTimeout() { return timeoutOfAll; }

std::unique_ptr<Communicator>
connect(BackendKind kind, const c10::intrusive_ptr<c10d::Store> &store,
        const GroupDescription &group, bool localOnly) {
  try {
    auto named = c10::make_intrusive<c10d::PrefixStore>(group.name, store);
    if (kind == BackendKind::Nccl || kind == BackendKind::Lifted) {
      std::string error;
      const CudaModule *cuda = loadCudaModule(error);
      if (!cuda)
        throw std::runtime_error(error);
      return std::make_unique<Communicator>(
          cuda->makeNccl(named, group, libraryTimeout()),
          kind == BackendKind::Nccl ? Communicator::Way::Stream
                                    : Communicator::Way::Lifted);
    }
#ifdef USE_C10D_GLOO
    return std::make_unique<Communicator>(makeGloo(named, group, localOnly),
                                          kind == BackendKind::Staged
                                              ? Communicator::Way::Staged
                                              : Communicator::Way::Host);
#else
    throw std::runtime_error("accel-run was built without Gloo");
#endif
  } catch (const std::exception &error) {
    throw CollectiveError("joining group '" + group.name +
                          "': " + plainMessage(error));
  }
}

} // namespace accel::run
