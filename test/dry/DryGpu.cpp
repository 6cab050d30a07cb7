//===- DryGpu.cpp - Streams and memory that are only noted down -----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "test/dry/DryGpu.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <sys/mman.h>

namespace accel::dry {

thread_local int currentDevice = 0;
thread_local bool threadQueues = false;

DryGpu &DryGpu::get() {
  // Never destroyed: libraries queue work until the process ends.
  static DryGpu *gpu = [] {
    auto *made = new DryGpu;
    std::atexit([] { DryGpu::get().report(); });
    return made;
  }();
  return *gpu;
}

void DryGpu::context() { contexts.insert(currentDevice); }

void DryGpu::count(const std::string &what, int64_t n) {
  counts[what] += n;
  if (!stepCounts.empty())
    stepCounts.back()[what] += n;
}

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

Actor DryGpu::actor(cudaStream_t stream) {
  auto at = streams.find(stream);
  if (at != streams.end())
    return at->second;
  return streams[stream] = order.addStream("the default stream");
}

cudaStream_t DryGpu::makeStream(int priority) {
  auto stream = reinterpret_cast<cudaStream_t>(nextHandle += 16);
  streams[stream] = order.addStream("stream " + std::to_string(streams.size()) +
                                    " of priority " + std::to_string(priority));
  return stream;
}

Actor DryGpu::enqueue(cudaStream_t stream, const char *what) {
  threadQueues = true;
  const Actor on = actor(stream);
  order.enqueue(on);
  ++queued;
  count(what);
  if (!stream)
    count("on the default stream");
  return on;
}

Actor DryGpu::launch(cudaStream_t stream, const char *what,
                     const char *kernel) {
  context();
  const Actor on = enqueue(stream, what);
  if (kernel)
    ++kernels[kernel];
  const std::string &op = currentOperator();
  if (!stream)
    warn(std::string(what) + " on the default stream in '" + op + "'");
  // What ACCEL_RUN_DISTURB launches spins, and touches nothing.
  if (op.empty() && kernel && !std::strstr(kernel, "spin"))
    warn(std::string("a kernel outside of any operator: ") + kernel);
  Queued item;
  item.stream = on;
  item.name = op;
  trace(std::move(item));
  attachAccesses(on);
  return on;
}

void DryGpu::trace(Queued item) {
  static const char *wanted = std::getenv("DRY_TRACE");
  // stepCounts has one entry a step that has begun.
  if (!wanted || stepCounts.size() != std::strtoul(wanted, nullptr, 10) + 1)
    return;
  // ProcessGroupNCCL opens scopes of its own inside the runtime's.
  const auto own =
      std::find_if(places.rbegin(), places.rend(), [](const std::string &text) {
        return !std::string_view(text).starts_with("nccl:");
      });
  if (own != places.rend())
    item.place = own->substr(0, own->find(' '));
  traced.push_back(std::move(item));
}

static uint64_t idOf(cudaEvent_t event) {
  return reinterpret_cast<uintptr_t>(event);
}

void DryGpu::record(cudaEvent_t event, cudaStream_t stream) {
  count("event records");
  const Actor on = actor(stream);
  order.record(idOf(event), on);
  queuedBefore[idOf(event)] = queued;
  trace({Queued::Record, on, idOf(event), {}, {}, {}});
}

void DryGpu::wait(cudaStream_t stream, cudaEvent_t event) {
  count("event waits");
  const Actor on = actor(stream);
  if (!order.wait(on, idOf(event)))
    warn(order.name(on) + " waits for an event that nothing recorded");
  trace({Queued::Wait, on, idOf(event), {}, {}, {}});
}

void DryGpu::synchronize(cudaStream_t stream) {
  count("host waits");
  count("host waits in " +
        (currentOperator().empty() ? "the runtime" : currentOperator()));
  const Actor on = actor(stream);
  order.synchronize(on);
  trace({Queued::HostWait, on, 0, {}, {}, {}});
  settle();
}

void DryGpu::synchronizeEvent(cudaEvent_t event) {
  order.synchronizeEvent(idOf(event));
  settle();
}

bool DryGpu::hasPassed(cudaEvent_t event) const {
  return order.hasPassed(idOf(event));
}

void DryGpu::forget(cudaEvent_t event) {
  order.forgetEvent(idOf(event));
  queuedBefore.erase(idOf(event));
}

int64_t DryGpu::queuedBetween(cudaEvent_t from, cudaEvent_t to) const {
  auto before = [&](cudaEvent_t event) {
    auto at = queuedBefore.find(idOf(event));
    return at == queuedBefore.end() ? 0 : at->second;
  };
  return before(to) - before(from);
}

void DryGpu::synchronizeDevice() {
  count("host waits");
  count("host waits in the runtime");
  order.synchronizeAll();
  trace({Queued::HostWait, host, 0, {}, {}, {}});
  settle();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

size_t DryGpu::totalBytes() const {
  const char *text = std::getenv("DRY_MEMORY_GIB");
  return (text ? std::strtoull(text, nullptr, 10) : 141) << 30;
}

void *DryGpu::reserve(size_t bytes) {
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return nullptr;
  blocks[reinterpret_cast<uintptr_t>(memory)] = bytes;
  return memory;
}

void DryGpu::unreserve(void *pointer) {
  auto at = blocks.find(reinterpret_cast<uintptr_t>(pointer));
  if (at == blocks.end())
    return;
  order.forget(at->first, at->first + at->second);
  munmap(pointer, at->second);
  blocks.erase(at);
}

bool DryGpu::take(size_t bytes) {
  if (bytes > freeBytes())
    return false;
  reservedBytes += bytes;
  reservedPeak = std::max(reservedPeak, reservedBytes);
  return true;
}

void *DryGpu::allocate(size_t bytes) {
  context();
  count("cudaMalloc");
  if (!take(bytes))
    return nullptr;
  void *memory = reserve(bytes);
  if (!memory)
    give(bytes);
  return memory;
}

void DryGpu::release(void *pointer) {
  auto at = blocks.find(reinterpret_cast<uintptr_t>(pointer));
  if (at == blocks.end())
    return;
  // cudaFree waits for the device.
  count("cudaFree");
  order.synchronizeAll();
  settle();
  give(at->second);
  unreserve(pointer);
}

void DryGpu::pin(void *pointer, size_t bytes) {
  pinned[reinterpret_cast<uintptr_t>(pointer)] = bytes;
  pinnedBytes += bytes;
  pinnedPeak = std::max(pinnedPeak, pinnedBytes);
}

void DryGpu::unpin(void *pointer) {
  const auto at = pinned.find(reinterpret_cast<uintptr_t>(pointer));
  if (at == pinned.end())
    return;
  order.synchronizeAll();
  order.forget(at->first, at->first + at->second);
  pinnedBytes -= at->second;
  pinned.erase(at);
}

static bool inside(const std::map<uintptr_t, size_t> &blocks,
                   const void *pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  auto at = blocks.upper_bound(address);
  if (at == blocks.begin())
    return false;
  --at;
  return address < at->first + at->second;
}

bool DryGpu::isDevice(const void *pointer) const {
  return inside(blocks, pointer);
}
bool DryGpu::isPinned(const void *pointer) const {
  return inside(pinned, pointer);
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

static uint64_t hashOf(const void *data, size_t size) {
  return std::hash<std::string_view>()(
      std::string_view(static_cast<const char *>(data), size));
}

void DryGpu::settle() {
  std::erase_if(copies, [&](Copy &copy) {
    if (!order.isDone(copy.moment))
      return false;
    if (copy.from && hashOf(copy.from, copy.size) != copy.hash)
      warn("pinned memory was changed before the copy from it was done");
    if (copy.to)
      std::memcpy(copy.to, copy.bytes.data(), copy.size);
    return true;
  });
}

std::vector<char> DryGpu::contents(const void *from, size_t bytes) const {
  const char *begin = static_cast<const char *>(from);
  std::vector<char> result(begin, begin + bytes);
  for (const Copy &copy : copies) {
    if (!copy.to)
      continue;
    const char *to = static_cast<const char *>(copy.to);
    const char *first = std::max(begin, to);
    const char *last = std::min(begin + bytes, to + copy.size);
    if (first < last)
      std::memcpy(result.data() + (first - begin),
                  copy.bytes.data() + (first - to), last - first);
  }
  return result;
}

void DryGpu::overwrite(const void *to, size_t bytes) {
  const char *begin = static_cast<const char *>(to);
  for (Copy &copy : copies) {
    const char *from = static_cast<const char *>(copy.from);
    if (!from || from >= begin + bytes || begin >= from + copy.size)
      continue;
    if (hashOf(contents(from, copy.size).data(), copy.size) != copy.hash)
      warn("pinned memory was changed before the copy from it was done");
    copy.from = nullptr;
  }
}

/// Copies and fills on the device leave large blocks untouched where nothing
/// computes their values: the host then never has to find their pages.
static bool holdsValues(size_t bytes) {
  return bytes < (1 << 20) || computesValues(bytes);
}

void DryGpu::copy(void *to, const void *from, size_t bytes,
                  cudaStream_t stream) {
  const bool toDevice = isDevice(to), fromDevice = isDevice(from);
  const char *what = toDevice && fromDevice ? "copies on the device"
                     : toDevice             ? "copies to the device"
                     : fromDevice           ? "copies to the host"
                                            : "copies on the host";
  const Actor on = launch(stream, what, nullptr);
  auto range = [&](const void *pointer, bool writes) {
    const auto begin = reinterpret_cast<uintptr_t>(pointer);
    order.access(on, begin, begin + bytes, writes,
                 currentOperator() + (writes ? " copy to" : " copy from"));
  };
  if (fromDevice || isPinned(from))
    range(from, false);
  if (toDevice || isPinned(to))
    range(to, true);
  Copy pending;
  pending.moment = order.enqueue(on);
  pending.size = bytes;
  if (!toDevice && isPinned(to)) {
    // Until the host has waited it sees anything but the values.
    const char *source = static_cast<const char *>(from);
    overwrite(to, bytes);
    pending.to = to;
    pending.bytes.assign(source, source + bytes);
    std::memset(to, 0xff, bytes);
    copies.push_back(std::move(pending));
    return;
  }
  if (isPinned(from)) {
    const std::vector<char> source = contents(from, bytes);
    std::memcpy(to, source.data(), bytes);
    pending.from = from;
    pending.hash = hashOf(source.data(), bytes);
    copies.push_back(std::move(pending));
    return;
  }
  if (!toDevice || holdsValues(bytes))
    std::memmove(to, from, bytes);
  if (!toDevice || !fromDevice) {
    // The driver stages pageable memory: the host waits for copies from the
    // device, and where it copies to it for the staging alone.
    if (fromDevice) {
      order.synchronize(on);
      settle();
    }
    count("copies of pageable memory");
  }
}

void DryGpu::fill(void *to, int value, size_t bytes, cudaStream_t stream) {
  const Actor on = launch(stream, "fills", nullptr);
  const auto begin = reinterpret_cast<uintptr_t>(to);
  order.access(on, begin, begin + bytes, true, currentOperator() + " fill");
  if (!isDevice(to) || holdsValues(bytes))
    std::memset(to, value, bytes);
}

//===----------------------------------------------------------------------===//
// Places and the report
//===----------------------------------------------------------------------===//

void DryGpu::beginPlace(const std::string &text) {
  if (text == "accel-run step")
    stepCounts.emplace_back();
  places.push_back(text);
}

void DryGpu::endPlace() { places.pop_back(); }

void DryGpu::report() {
  Lock lock(mutex);
  const char *path = std::getenv("DRY_REPORT");
  if (reported || !path || contexts.empty())
    return;
  reported = true;
  using nlohmann::ordered_json;
  auto object = [](const std::map<std::string, int64_t> &map) {
    ordered_json json = ordered_json::object();
    for (const auto &[key, n] : map)
      json[key] = n;
    return json;
  };
  ordered_json named = ordered_json::object();
  for (const auto &[kernel, n] : kernels)
    named[kernel] = n;
  ordered_json steps = ordered_json::array();
  for (const auto &step : stepCounts)
    steps.push_back(object(step));
  static const char *kinds[] = {"work",      "collective", "record", "wait",
                                "host-wait", "send",       "receive"};
  ordered_json trace = ordered_json::array();
  for (const Queued &item : traced)
    trace.push_back({{"kind", kinds[item.kind]},
                     {"stream", item.stream},
                     {"event", item.event},
                     {"name", item.name},
                     {"place", item.place},
                     {"channel", item.channel}});
  ordered_json json = {{"accesses", order.accessCount()},
                       {"race_count", order.raceCount()},
                       {"races", object(order.races())},
                       {"warnings", object(warnings)},
                       {"contexts", contexts},
                       {"reserved_peak_bytes", reservedPeak},
                       {"pinned_peak_bytes", pinnedPeak},
                       {"counts", object(counts)},
                       {"kernels", std::move(named)},
                       {"steps", std::move(steps)},
                       {"collectives", collectives},
                       {"communicators", communicators},
                       {"trace", std::move(trace)}};
  const char *rank = std::getenv("RANK");
  const std::string name = std::string(path) + "." + (rank ? rank : "0");
  if (std::FILE *file = std::fopen(name.c_str(), "w")) {
    const std::string text = json.dump(1) + "\n";
    std::fwrite(text.data(), 1, text.size(), file);
    std::fclose(file);
  }
}

} // namespace accel::dry
