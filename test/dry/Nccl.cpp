//===- Nccl.cpp - Collectives of processes that have no GPU ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "test/dry/DryGpu.h"
#include "test/dry/Exchange.h"

#include <nccl.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace accel::dry;

namespace {

DryGpu &gpu() { return DryGpu::get(); }

struct Made {
  Made(int rank, int size, int index, const std::string &id)
      : name("communicator " + std::to_string(index)), id(id),
        exchange(rank, size, id) {
    gpu().communicator(id);
  }
  std::string name; // among those of this process
  std::string id;   // the same on all ranks of the group
  Exchange exchange;
  int splits = 0; // ncclCommSplit
};
int communicators = 0;

Made &made(ncclComm_t comm) { return *reinterpret_cast<Made *>(comm); }

c10::ScalarType typeOf(ncclDataType_t type) {
  switch (type) {
  case ncclInt8:
    return c10::ScalarType::Char;
  case ncclUint8:
    return c10::ScalarType::Byte;
  case ncclInt32:
    return c10::ScalarType::Int;
  case ncclInt64:
    return c10::ScalarType::Long;
  case ncclFloat16:
    return c10::ScalarType::Half;
  case ncclBfloat16:
    return c10::ScalarType::BFloat16;
  case ncclFloat64:
    return c10::ScalarType::Double;
  default:
    return c10::ScalarType::Float;
  }
}

/// `sent` and `received` are elements of this rank.
ncclResult_t run(const char *what, Collective kind, const void *from,
                 size_t sent, void *to, size_t received, ncclDataType_t type,
                 ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  Lock lock(gpu().mutex);
  Made &group = made(comm);
  const Actor on = gpu().enqueue(stream, what);
  if (!stream)
    gpu().warn(std::string(what) + " on the default stream");
  const c10::ScalarType dtype = typeOf(type);
  const size_t item = c10::elementSize(dtype);
  auto access = [&](const void *pointer, size_t count, bool writes) {
    const auto begin = reinterpret_cast<uintptr_t>(pointer);
    gpu().order.access(on, begin, begin + count * item, writes,
                       std::string(what) + (writes ? " receive" : " send"));
  };
  access(from, sent, false);
  access(to, received, true);
  Queued item_;
  item_.kind = Queued::Collective;
  item_.stream = on;
  item_.name = what;
  gpu().trace(std::move(item_));
  gpu().collective(group.name + ": " + what + " of " + std::to_string(sent) +
                   " x " + c10::toString(dtype) + " on " +
                   gpu().order.name(on));
  if (op != ncclSum && op != ncclMax)
    gpu().warn(std::string(what) + ": a reduction that is not modelled");
  if (computesValues(std::max(sent, received) * item))
    group.exchange.run(kind, from, sent, to, received, dtype, op == ncclMax);
  return ncclSuccess;
}

/// A send or a receive of a group call.
struct Message {
  bool sends;
  void *data;
  size_t count;
  ncclDataType_t type;
  int peer;
  ncclComm_t comm;
  cudaStream_t stream;
};
std::vector<Message> messages; // since the outermost ncclGroupStart
int groupDepth = 0;

/// All of them at once, as NCCL runs a group: what is sent first, so that ranks
/// that send to each other do not wait.
void runMessages() {
  std::stable_partition(messages.begin(), messages.end(),
                        [](const Message &message) { return message.sends; });
  for (const Message &message : messages) {
    const char *what = message.sends ? "ncclSend" : "ncclRecv";
    Made &group = made(message.comm);
    const Actor on = gpu().enqueue(message.stream, what);
    if (!message.stream)
      gpu().warn(std::string(what) + " on the default stream");
    const c10::ScalarType dtype = typeOf(message.type);
    const size_t bytes = message.count * c10::elementSize(dtype);
    const auto begin = reinterpret_cast<uintptr_t>(message.data);
    gpu().order.access(on, begin, begin + bytes, !message.sends, what);
    Queued item;
    item.kind = message.sends ? Queued::Send : Queued::Receive;
    item.stream = on;
    item.name = what;
    const int own = group.exchange.rank();
    item.channel = group.id + " " +
                   std::to_string(message.sends ? own : message.peer) + ">" +
                   std::to_string(message.sends ? message.peer : own);
    gpu().trace(std::move(item));
    gpu().collective(group.name + ": " + what + " of " +
                     std::to_string(message.count) + " x " +
                     c10::toString(dtype) + " on " + gpu().order.name(on));
    if (!computesValues(bytes))
      continue;
    if (message.sends)
      group.exchange.send(message.data, bytes, message.peer);
    else
      group.exchange.receive(message.data, bytes, message.peer);
  }
  messages.clear();
}

ncclResult_t add(Message message) {
  if (message.count == 0)
    return ncclSuccess; // torch's all-to-all has a message for every peer
  Lock lock(gpu().mutex);
  messages.push_back(message);
  if (groupDepth == 0)
    runMessages();
  return ncclSuccess;
}

} // namespace

extern "C" {

ncclResult_t ncclGetVersion(int *version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  static int next = 0;
  std::memset(id, 0, sizeof *id);
  std::snprintf(id->internal, sizeof id->internal, "%d-%d",
                static_cast<int>(getpid()), next++);
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int size, ncclUniqueId id,
                                    int rank, ncclConfig_t *) {
  Lock lock(gpu().mutex);
  gpu().context();
  *comm = reinterpret_cast<ncclComm_t>(
      new Made(rank, size, communicators++, id.internal));
  gpu().count("communicators");
  return ncclSuccess;
}
ncclResult_t ncclCommInitRank(ncclComm_t *comm, int size, ncclUniqueId id,
                              int rank) {
  return ncclCommInitRankConfig(comm, size, id, rank, nullptr);
}
ncclResult_t ncclCommInitRankScalable(ncclComm_t *comm, int size, int rank, int,
                                      ncclUniqueId *id, ncclConfig_t *config) {
  return ncclCommInitRankConfig(comm, size, *id, rank, config);
}
/// Ranks of one colour become a communicator, in the order of their keys. They
/// tell each other both through the parent, of which each rank splits as often.
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key,
                           ncclComm_t *newcomm, ncclConfig_t *) {
  Lock lock(gpu().mutex);
  Made &parent = made(comm);
  const int size = parent.exchange.size(), rank = parent.exchange.rank();
  const int64_t own[2] = {color, key};
  std::vector<int64_t> all(2 * size);
  parent.exchange.run(Collective::AllGather, own, 2, all.data(), all.size(),
                      c10::ScalarType::Long, false);
  const int split = parent.splits++;
  *newcomm = nullptr;
  if (color < 0) // NCCL_SPLIT_NOCOLOR
    return ncclSuccess;
  int members = 0, position = 0;
  for (int other = 0; other < size; ++other) {
    if (all[2 * other] != color)
      continue;
    ++members;
    position += std::pair(all[2 * other + 1], other) <
                std::pair<int64_t, int>(key, rank);
  }
  *newcomm = reinterpret_cast<ncclComm_t>(new Made(
      position, members, communicators++,
      parent.id + "-" + std::to_string(split) + "-" + std::to_string(color)));
  gpu().count("communicators");
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t) { return ncclSuccess; }
ncclResult_t ncclCommAbort(ncclComm_t) {
  Lock lock(gpu().mutex);
  gpu().count("communicators aborted");
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t *error) {
  *error = ncclSuccess;
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank) {
  *rank = made(comm).exchange.rank();
  return ncclSuccess;
}
ncclResult_t ncclCommCount(const ncclComm_t comm, int *size) {
  *size = made(comm).exchange.size();
  return ncclSuccess;
}
ncclResult_t ncclCommRegister(const ncclComm_t, void *, size_t, void **) {
  return ncclSuccess;
}
ncclResult_t ncclCommDeregister(const ncclComm_t, void *) {
  return ncclSuccess;
}
const char *ncclGetErrorString(ncclResult_t) { return "dry"; }
const char *ncclGetLastError(ncclComm_t) { return "dry"; }
ncclResult_t ncclGroupStart() {
  Lock lock(gpu().mutex);
  ++groupDepth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  Lock lock(gpu().mutex);
  if (--groupDepth == 0)
    runMessages();
  return ncclSuccess;
}
ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type,
                      int peer, ncclComm_t comm, cudaStream_t stream) {
  return add({true, const_cast<void *>(from), count, type, peer, comm, stream});
}
ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return add({false, to, count, type, peer, comm, stream});
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count,
                           ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return run("ncclAllGather", Collective::AllGather, from, count, to,
             count * made(comm).exchange.size(), type, ncclSum, comm, stream);
}
ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count,
                               ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  return run("ncclReduceScatter", Collective::ReduceScatter, from,
             count * made(comm).exchange.size(), to, count, type, op, comm,
             stream);
}
ncclResult_t ncclAllReduce(const void *from, void *to, size_t count,
                           ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream) {
  return run("ncclAllReduce", Collective::AllReduce, from, count, to, count,
             type, op, comm, stream);
}
/// `count` elements for each rank.
ncclResult_t ncclAlltoAll(const void *from, void *to, size_t count,
                          ncclDataType_t type, ncclComm_t comm,
                          cudaStream_t stream) {
  const size_t all = count * made(comm).exchange.size();
  return run("ncclAlltoAll", Collective::AllToAll, from, all, to, all, type,
             ncclSum, comm, stream);
}

/// The root's message to every other rank.
ncclResult_t ncclBroadcast(const void *from, void *to, size_t count,
                           ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  const Exchange &exchange = made(comm).exchange;
  if (exchange.rank() != root)
    return add({false, to, count, type, root, comm, stream});
  const size_t bytes = count * c10::elementSize(typeOf(type));
  if (computesValues(bytes) && from != to)
    std::memcpy(to, from, bytes);
  for (int peer = 0; peer < exchange.size(); ++peer)
    if (peer != root)
      add({true, const_cast<void *>(from), count, type, peer, comm, stream});
  return ncclSuccess;
}
ncclResult_t ncclBcast(void *data, size_t count, ncclDataType_t type, int root,
                       ncclComm_t comm, cudaStream_t stream) {
  return ncclBroadcast(data, data, count, type, root, comm, stream);
}

} // extern "C"
