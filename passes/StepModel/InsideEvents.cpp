//===- InsideEvents.cpp - What operators need while they run --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/StepModel/InsideEvents.h"

#include "passes/Segments/InnerBytes.h"

#include <algorithm>
#include <utility>

namespace accel {

void emitLibraryOf(const SegmentGraph &graph, const plan::Function &function,
                   const plan::Instruction &instr,
                   std::vector<StorageEvent> &events) {
  if (!graph.inside)
    return;
  const int64_t bytes = libraryWorkspace(function, instr, graph.device);
  const bool known =
      std::any_of(events.begin(), events.end(), [&](const StorageEvent &event) {
        return event.kind == StorageEvent::Kind::Library &&
               event.bytes == bytes;
      });
  if (bytes > 0 && !known)
    events.push_back({StorageEvent::Kind::Library, -1, bytes});
}

int64_t emitInsideOf(const SegmentGraph &graph, const plan::Instruction &instr,
                     int number, std::vector<StorageEvent> &events) {
  using Kind = StorageEvent::Kind;
  int64_t level = 0, peak = 0;
  std::vector<int64_t> sizes;
  auto nameOf = [&](size_t which) { return number + static_cast<int>(which); };
  auto allocate = [&](int64_t bytes) {
    bytes = (bytes + graph.rounding - 1) / graph.rounding * graph.rounding;
    events.push_back({Kind::Allocate, nameOf(sizes.size()), bytes});
    sizes.push_back(bytes);
    peak = std::max(peak, level += bytes);
  };
  auto free = [&](size_t which) {
    events.push_back({Kind::Free, nameOf(which), 0});
    level -= std::exchange(sizes[which], 0);
  };
  if (instr.workspaceBytes > 0)
    allocate(instr.workspaceBytes);
  emitLibraryOf(graph, graph.function, instr, events);
  if (graph.inside) {
    const InnerBytes inner = innerBytes(graph.function, instr, graph.device);
    for (int64_t bytes : inner.before)
      allocate(bytes);
    const size_t base = sizes.size();
    for (int64_t bytes : inner.after)
      if (bytes >= 0)
        allocate(bytes);
      else
        free(base + static_cast<size_t>(-bytes - 1));
  }
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] > 0)
      free(i);
  return peak;
}

} // namespace accel
