//===- StepTrace.h - A step, one thing after the other ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What the engine plays of a candidate, written down for people to look at:
// the very step whose bytes and seconds are reported.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FRAMEWORKSTEPS_STEPTRACE_H
#define ACCEL_PASSES_FRAMEWORKSTEPS_STEPTRACE_H

#include "passes/FrameworkSteps/StepEvaluator.h"

namespace accel {

struct TraceSlice {
  /// Before: what the step before still computes.
  enum class Kind { Compute, Copy, Collective, Wait, Before };
  Kind kind = Kind::Compute;
  std::string stream;        // "compute", "gather", ...
  std::string name, where;   // "all-gather in ...", "backward of model..."
  double begin = 0, end = 0; // seconds from the start of the step
  int64_t bytes = 0;         // of a collective
};

/// Bytes that are allocated, or freed (negative), when the compute stream is
/// there: the caching allocator goes by the order of the CPU thread.
struct TraceChange {
  double at = 0;
  Holding holding{};
  int64_t bytes = 0;
};

struct StepTrace {
  std::vector<TraceSlice> slices;   // in order of issue
  std::vector<TraceChange> changes; // likewise; first what stays
};

StepTrace traceStep(const StepModel &model, const Target &target,
                    const Candidate &candidate);

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKSTEPS_STEPTRACE_H
