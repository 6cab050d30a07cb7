//===- Replay.cpp - How long what was queued takes ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "test/dry/Replay.h"

#include <algorithm>
#include <map>
#include <set>

namespace accel::dry {

double replay(const std::vector<TraceItem> &step, int computes, double taken,
              const std::function<PlaceSeconds(const std::string &)> &seconds,
              int steps) {
  std::map<int, double> clock; // by stream: when it is free
  std::map<uint64_t, double> events;
  double wire = 0;
  std::string place;
  PlaceSeconds cost;
  std::set<int> worked; // streams that have had the work of this place
  for (size_t i = 0; i < step.size() * steps; ++i) {
    const TraceItem &item = step[i % step.size()];
    if (item.place != place) {
      place = item.place;
      cost = place.empty() ? PlaceSeconds() : seconds(place);
      worked.clear();
    }
    double &now = clock[item.stream];
    switch (item.kind) {
    case TraceItem::Work:
      // All kernels of a place cost what the place costs, at the first one.
      if (worked.insert(item.stream).second)
        now += item.stream == computes ? cost.compute : cost.before;
      break;
    case TraceItem::Collective:
      now = std::max(now, wire) + cost.transfer;
      wire = now;
      clock[computes] += cost.transfer * taken;
      break;
    case TraceItem::Record:
      events[item.event] = now;
      break;
    case TraceItem::Wait:
      now = std::max(now, events[item.event]);
      break;
    case TraceItem::HostWait:
      break; // the host is ahead of the device
    }
  }
  double last = 0;
  for (const auto &[stream, end] : clock)
    last = std::max(last, end);
  return last;
}

} // namespace accel::dry
