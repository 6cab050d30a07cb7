//===- Simulate.h - Seconds and bytes of a schedule -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_PIPELINESCHEDULES_SIMULATE_H
#define ACCEL_PASSES_PIPELINESCHEDULES_SIMULATE_H

#include "passes/PipelineSchedules/Schedule.h"

#include <optional>

namespace accel::pipeline {

/// What one micro-batch takes in one stage.
struct StageCost {
  double forward = 0, backwardInput = 0, backwardWeight = 0; // seconds
  /// The frame: what the forward leaves for the backward.
  int64_t frameBytes = 0;
  /// Of the frame, what the weights' part does not read.
  int64_t inputOnlyBytes = 0;
  /// What the input's part leaves for the weights' part, beside the frame.
  int64_t weightOnlyBytes = 0;

  double seconds(Pass pass) const;
};

struct Costs {
  std::vector<StageCost> stages;
  double transfer = 0; // seconds from a rank to another
};

struct Span {
  double start = 0, end = 0;
};

struct RankTotals {
  double busy = 0;
  double bubble = 0; // the rest of the makespan
  double gaps = 0;   // of it, between its first action and its last
  /// Most bytes of frames and of what weights' parts read at once.
  int64_t peakBytes = 0;
};

struct Simulation {
  double makespan = 0;
  std::vector<std::vector<Span>> ranks; // as Schedule::ranks
  std::vector<RankTotals> totals;       // by rank

  /// The share of all ranks' time that is bubble.
  double bubbleShare() const;
};

/// A verified schedule, what it takes, and what its stages are.
struct SimulatedStep {
  Problem problem;
  Schedule schedule;
  Simulation simulation;
  /// By stage: the first and last part of the model that it computes. Empty
  /// where the stages are nobody's.
  std::vector<std::string> holds;
};

/// Each rank executes its order, an action as soon as what it reads is there:
/// transfers take none of a rank's time and do not wait for each other. Nothing
/// where ranks wait for each other; other faults are for verify() to find
/// before.
std::optional<Simulation>
simulate(const Problem &problem, const Schedule &schedule, const Costs &costs);

} // namespace accel::pipeline

#endif // ACCEL_PASSES_PIPELINESCHEDULES_SIMULATE_H
