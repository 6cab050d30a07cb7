//===- LiveBuffers.h - Who holds memory at an instruction -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Timeline.h says how many bytes are live at each instruction of a program;
// this says whose they are, storage by storage: shards and states, buffers of
// units, values of the program, and what a call's operators made. Their bytes
// sum to the timeline's.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_LIVEBUFFERS_H
#define ACCEL_RUNTIME_PLAN_LIVEBUFFERS_H

#include "runtime/plan/Plan.h"

namespace accel::plan {

/// One storage, or one kind of storage of one unit.
struct LiveBuffer {
  /// "parameters", "optimizer", "gathered", "gradient", "receive",
  /// "shard_gradient" (of a unit); "buffer" (of the model); "value" (of the
  /// program); "temporary" (of the running call); "workspace" (of its operator,
  /// of the update of a unit, or kept by libraries).
  std::string kind;
  std::string name; // unit, value, or operator and module
  int64_t bytes = 0;
  int since = -1; // instruction that made it; -1: before it began
  bool operator==(const LiveBuffer &) const = default;
};

/// What is held during `instruction` of `Plan::programs[program]`, at its
/// highest moment: for a call the moment of its function's peak. `instruction`
/// is in range.
std::vector<LiveBuffer> liveBuffersAt(const Plan &plan, int program,
                                      int instruction);

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_LIVEBUFFERS_H
