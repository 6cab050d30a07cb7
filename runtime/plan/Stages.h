//===- Stages.h - The stages of a pipeline ----------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Ranks that differ along the axis pp have different parts of the model: a
// stage holds units and has programs of its own. A step is the order in which a
// stage's ranks run the parts of its programs, micro-batch by micro-batch.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_STAGES_H
#define ACCEL_RUNTIME_PLAN_STAGES_H

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace accel::plan {

/// The axis whose ranks are stages, in their order.
inline constexpr const char *pipelineAxis = "pp";

/// The instructions of a program up to its Pause, or behind it.
enum class Part { Forward, Backward };
const char *toString(Part part);

/// One part of one micro-batch.
struct StageAction {
  Part part = Part::Forward;
  int64_t microBatch = 0; // of the step
  bool operator==(const StageAction &) const = default;
};

/// What the ranks of one stage do, and what it takes on each of them.
struct Stage {
  /// Programs by index, with their repeat counts: those of the micro-batches in
  /// their order.
  std::vector<std::pair<int, int64_t>> step;
  std::vector<StageAction> order;
  int64_t frames = 0; // micro-batches between their parts, at most
  int eval = -1;      // program, or none
  // Predicted, as Plan::predicted is of the stage that takes most.
  int64_t peakBytes = 0, ownPeakBytes = 0, persistentBytes = 0;
  double busySeconds = 0; // of a step: the rest is bubble and communication
  bool operator==(const Stage &) const = default;
};

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_STAGES_H
