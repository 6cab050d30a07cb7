//===- Predicted.h - What was decided, and what it takes --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The compiler's account of a plan, for people and for comparison with what
// accel-run measures; nothing is executed by it. Bytes are of one rank.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_PREDICTED_H
#define ACCEL_RUNTIME_PLAN_PREDICTED_H

#include <cstdint>
#include <string>
#include <vector>

namespace accel::plan {

/// One line of "why": `where` is a unit, parameter or "job".
struct Decision {
  std::string what, where, choice, why;
  std::string file; // of the YAML line that caused it; empty: a default
  int line = 0, column = 0;
  std::vector<std::string> alternatives;
  bool operator==(const Decision &) const = default;
};

/// Bytes at the peak, by what holds them; sums to Predicted::peakBytes.
struct Breakdown {
  int64_t parameters = 0, gradients = 0, optimizer = 0, activations = 0,
          logits = 0, gathered = 0, buffers = 0;
  bool operator==(const Breakdown &) const = default;
};

/// Memory and time of an optimizer step on one rank.
struct Predicted {
  int64_t peakBytes = 0;       // own buffers and workspaces
  int64_t ownPeakBytes = 0;    // own buffers alone, exact
  int64_t persistentBytes = 0; // between steps
  int64_t reservedBytes = 0, deviceBytes = 0;
  /// Of a GPU: what torch.cuda.max_memory_allocated() tells of a rank, by
  /// replay. It has what operators need inside, which no other figure of
  /// tensors has, and its blocks are rounded as the allocator rounds them. 0:
  /// not known.
  int64_t allocatedBytes = 0;
  int64_t hostBytes = 0; // pinned memory of the host (Plan::offload)
  int64_t diskBytes = 0; // of a rank's file (Disk)
  Breakdown breakdown;
  std::string peakProgram;
  int peakInstruction = -1;
  std::string peakWhere;
  double stepSeconds = 0, computeSeconds = 0, exposedCommSeconds = 0;
  double tokensPerSecond = 0;
  bool hasTime = false;
  bool operator==(const Predicted &) const = default;
};

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_PREDICTED_H
