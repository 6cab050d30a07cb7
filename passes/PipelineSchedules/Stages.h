//===- Stages.h - Where a model is cut into stages --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A list of calls (embedding, blocks, head) becomes stages of consecutive
// calls: the slowest stage as fast as it can be, within the memory of each. A
// pipeline goes at the pace of its slowest stage, and of the cuts that keep
// that pace the one whose stages are most alike is taken.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_PIPELINESCHEDULES_STAGES_H
#define ACCEL_PASSES_PIPELINESCHEDULES_STAGES_H

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace accel::pipeline {

struct Call {
  std::string name;
  double seconds = 0;        // of a micro-batch, forward and backward
  int64_t heldBytes = 0;     // parameters, gradients, optimizer states
  int64_t perFrameBytes = 0; // saved for the backward of one micro-batch
};

struct StageProblem {
  struct Limit {
    int frames = 1; // micro-batches in flight (Schedule::frames)
    int64_t bytes = std::numeric_limits<int64_t>::max();
  };
  std::vector<Call> calls;
  std::vector<Limit> stages;
  /// The rank of each stage, where ranks have several: what they compute
  /// together should be alike too, and fit its bytes, which each of its stages
  /// has as its own. Empty: each has a rank of its own.
  std::vector<int> ranks;
  /// By rank of several stages: the micro-batches in flight at once, by stage,
  /// of those moments that are above no other's (momentsOf). Empty: those of
  /// `stages` all at once.
  std::vector<std::vector<std::vector<int>>> moments;
  /// The user's cut, as StageCut::begins; it is taken if it is one. Empty:
  /// the solver cuts.
  std::vector<int> begins;
};

struct StageCut {
  std::vector<int> begins; // by stage: its first call; rising from 0
  /// Of the slowest stage.
  double seconds = 0;
  /// Why there is no cut, or "".
  std::string problem;
};

/// By dynamic programming over (stage, first call).
StageCut cutStages(const StageProblem &problem);

/// What is wrong with a cut, or "": stages without calls, one over its bytes,
/// seconds that are not its slowest stage's.
std::string verify(const StageProblem &problem, const StageCut &cut);

} // namespace accel::pipeline

#endif // ACCEL_PASSES_PIPELINESCHEDULES_STAGES_H
