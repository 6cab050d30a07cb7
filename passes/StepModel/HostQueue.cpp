//===- HostQueue.cpp - What the host launches of a segment ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/StepModel/HostQueue.h"

#include <algorithm>
#include <cmath>

namespace accel {

void HostQueue::add(const SegmentGraph &graph, int instruction, double device,
                    const Target *target, int &ops, int &views) {
  const bool view = graph.view[instruction];
  if (graph.host.empty()) {
    ++(view ? views : ops);
    return;
  }
  const HostWork &work = graph.host[instruction];
  if (view) {
    views += work.replayed ? 0 : 1;
    return;
  }
  const double launches = work.replayed ? 0 : work.launches;
  ops += static_cast<int>(std::lround(launches));
  if (target)
    entries.push_back({device, launches * target->dispatchSeconds, work.waits});
}

double HostQueue::seconds(const Target *target) const {
  if (!target || std::none_of(entries.begin(), entries.end(),
                              [](const Entry &e) { return e.waits; }))
    return 0;
  // The second of two calls begins as every later one does.
  double host = 0, device = 0, first = 0;
  for (int call = 0; call < 2; ++call) {
    first = device;
    for (const Entry &e : entries) {
      host += e.host;
      device = std::max(device, host) + e.device;
      if (e.waits)
        host = device + target->host.latencySeconds;
    }
  }
  return device - first;
}

} // namespace accel
