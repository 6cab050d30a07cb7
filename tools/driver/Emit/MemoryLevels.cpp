//===- MemoryLevels.cpp - What is held, over a step -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Emit/MemoryLevels.h"

#include <numeric>

namespace accel {

int64_t MemoryLevel::sum() const {
  return std::accumulate(bytes.begin(), bytes.end(), int64_t(0));
}

std::vector<MemoryLevel> memoryLevels(const StepTrace &trace) {
  std::vector<MemoryLevel> levels;
  MemoryLevel now;
  for (size_t i = 0; i < trace.changes.size();) {
    now.at = trace.changes[i].at;
    MemoryLevel highest = now;
    bool first = true;
    for (; i < trace.changes.size() && trace.changes[i].at == now.at; ++i) {
      now.bytes[static_cast<int>(trace.changes[i].holding)] +=
          trace.changes[i].bytes;
      if (first || now.sum() > highest.sum())
        highest = now;
      first = false;
    }
    levels.push_back(highest);
    if (highest.bytes != now.bytes)
      levels.push_back(now);
  }
  return levels;
}

} // namespace accel
