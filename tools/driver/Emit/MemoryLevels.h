//===- MemoryLevels.h - What is held, over a step ---------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_EMIT_MEMORYLEVELS_H
#define ACCEL_TOOLS_DRIVER_EMIT_MEMORYLEVELS_H

#include "passes/FrameworkSteps/StepTrace.h"

#include <array>
#include <vector>

namespace accel {

struct MemoryLevel {
  double at = 0; // seconds
  std::array<int64_t, numHoldings> bytes{};
  int64_t sum() const;
};

/// The level of each purpose. Of changes at the same time the one with the
/// highest sum stands first, so that no peak is lost, and then the last.
std::vector<MemoryLevel> memoryLevels(const StepTrace &trace);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_EMIT_MEMORYLEVELS_H
