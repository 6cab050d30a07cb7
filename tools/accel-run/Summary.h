//===- Summary.h - Measured figures at the end ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_ACCEL_RUN_SUMMARY_H
#define ACCEL_TOOLS_ACCEL_RUN_SUMMARY_H

#include "runtime/plan/Plan.h"

#include <string>
#include <vector>

namespace accel::run {

/// What the kernel has counted for this process.
struct Usage {
  double cpuSeconds = 0;
  int64_t pageFaults = 0; // minor and major
  int64_t maxRssBytes = 0;
  static Usage now();
};

/// Maxima over ranks, but for times, which are medians of rank 0's steps after
/// the first three (or of all, where there are fewer).
struct Measured {
  int64_t ownPeakBytes = 0, peakBytes = 0, maxRssBytes = 0;
  int64_t reservedPeakBytes = 0;          // of a GPU; 0 on CPUs
  int64_t hostBytes = 0;                  // pinned, of what is offloaded
  int64_t diskBytes = 0;                  // of a file for states
  std::string diskIo;                     // "io_uring" or "threads"
  bool diskDirect = false;                // past the system's cache
  std::vector<int64_t> stageOwnPeakBytes; // of a pipeline
  double stepSeconds = 0, tokensPerSecond = 0;
  double cpuSecondsPerStep = 0, pageFaultsPerStep = 0;
  int64_t steps = 0;
  double firstLoss = 0, lastLoss = 0;
};

double median(std::vector<double> values);
/// A table for a person.
std::string summaryText(const plan::Plan &plan, const Measured &measured);
/// The same as JSON: {"measured": {...}, "predicted": {...}}.
std::string summaryJson(const plan::Plan &plan, const Measured &measured);

} // namespace accel::run

#endif // ACCEL_TOOLS_ACCEL_RUN_SUMMARY_H
