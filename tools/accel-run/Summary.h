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
  static Usage now();
};

/// The most bytes that this program has had in memory; 0 where the system does
/// not tell. That of getrusage begins with what the program had that started
/// it, torchrun's Python.
int64_t maxRssBytes();

/// How a rank of a pipeline's stage spent a step that was profiled, in seconds.
/// The rest of the step is bubble.
struct StageUse {
  double step = 0;     // of the whole pipeline
  double computes = 0; // what Stage::busySeconds predicts
  /// For messages of other stages and for what it has sent them; and for all
  /// else: gathers, reductions, the norm.
  double waitsForStages = 0, waits = 0;
  /// The part of the step in which it does not compute.
  double idleShare() const { return 1 - computes / step; }
};

/// Maxima over ranks, but for times, which are medians of rank 0's steps after
/// the first three (or of all, where there are fewer).
struct Measured {
  int64_t ownPeakBytes = 0, peakBytes = 0, maxRssBytes = 0;
  int64_t reservedPeakBytes = 0;          // of a GPU; 0 on CPUs
  int64_t allocatedPeakBytes = 0;         // likewise
  int64_t hostBytes = 0;                  // pinned, of what is offloaded
  int64_t diskBytes = 0;                  // of a file for states
  std::string diskIo;                     // "io_uring" or "threads"
  bool diskDirect = false;                // past the system's cache
  std::vector<int64_t> stageOwnPeakBytes; // of a pipeline
  std::vector<StageUse> stageUse;         // of one that was profiled
  double stepSeconds = 0, tokensPerSecond = 0;
  double cpuSecondsPerStep = 0, pageFaultsPerStep = 0;
  int64_t steps = 0, skippedSteps = 0; // skipped: their update was left out
  double firstLoss = 0, lastLoss = 0;  // of the first and the last line
};

double median(std::vector<double> values);
/// A table for a person.
std::string summaryText(const plan::Plan &plan, const Measured &measured);
/// The same as JSON: {"measured": {...}, "predicted": {...}}.
std::string summaryJson(const plan::Plan &plan, const Measured &measured);

} // namespace accel::run

#endif // ACCEL_TOOLS_ACCEL_RUN_SUMMARY_H
