//===- RecordedBytes.h - Bytes of a recorded step ---------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TEST_UNIT_RECORDEDBYTES_H
#define ACCEL_TEST_UNIT_RECORDEDBYTES_H

#include "passes/Replay/Replay.h"

#include <algorithm>
#include <vector>

namespace accel {

/// Of all tensors at their peak, as they are asked for: some of DeepSpeed's
/// sums are not of whole blocks.
inline int64_t bytesAtPeak(const replay::Problem &problem) {
  std::vector<int64_t> bytes(static_cast<size_t>(problem.tensors), 0);
  int64_t level = 0, peak = 0;
  for (const replay::Event &event : problem.events) {
    if (event.action == replay::Action::Allocate)
      level += bytes[event.tensor] = event.bytes;
    else if (event.action == replay::Action::Free ||
             event.action == replay::Action::Park)
      level -= bytes[event.tensor];
    peak = std::max(peak, level);
  }
  return peak;
}

} // namespace accel

#endif // ACCEL_TEST_UNIT_RECORDEDBYTES_H
