//===- Schedule.h - Who computes what, in which order -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A pipeline's schedule as data: for each rank the list of what it computes, a
// micro-batch in a stage at a time. What the kinds are, and where each is from:
//
//   gpipe             all forwards, then all backwards (Huang et al., "GPipe",
//                     NeurIPS 2019, arXiv:1811.06965)
//   1f1b              a backward as soon as there is one (PipeDream-Flush:
//                     Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN
//                     Training", ICML 2021, arXiv:2006.09503)
//   interleaved-1f1b  several chunks of the model on each rank, in turns
//                     (Narayanan et al., "Efficient Large-Scale Language Model
//                     Training on GPU Clusters Using Megatron-LM", SC 2021,
//                     arXiv:2104.04473)
//   zb-h1, zb-v       the backward in two parts, of which the weights' fills
//                     bubbles (Qi et al., "Zero Bubble Pipeline Parallelism",
//                     ICLR 2024, arXiv:2401.10241; the V: "Pipeline Parallelism
//                     with Controllable Memory", arXiv:2405.15362)
//
// Verify.h judges a schedule, whoever wrote it, and Simulate.h prices it.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_PIPELINESCHEDULES_SCHEDULE_H
#define ACCEL_PASSES_PIPELINESCHEDULES_SCHEDULE_H

#include "runtime/plan/Chunks.h"

#include <cstdint>
#include <string>
#include <vector>

namespace accel::pipeline {

enum class Kind : uint8_t { GPipe, OneFOneB, Interleaved, ZbH1, ZbV };

struct KindDescription {
  Kind kind;
  const char *name;
  int chunks; // that a rank has unless said otherwise
};
const std::vector<KindDescription> &kinds();
const KindDescription &describe(Kind kind);
/// Null where no kind has the name.
const KindDescription *findKind(const std::string &name);

struct Problem {
  Kind kind = Kind::OneFOneB;
  int stages = 1; // cuts of the model, all ranks together
  int chunks = 1; // stages on each rank
  int microBatches = 1;

  int ranks() const { return stages / chunks; }
  int rankOf(int stage) const {
    return plan::ChunkLayout(ranks(), chunks, describe(kind).name)
        .stageOf(stage);
  }
};

/// Why there is no such schedule, and which numbers fit; or "".
std::string check(const Problem &problem);

enum class Pass : uint8_t {
  Forward,
  Backward,       // both of:
  BackwardInput,  // gradients of what the stage read
  BackwardWeight, // gradients of its parameters
};
/// "forward", "backward-input".
const char *toString(Pass pass);

struct Action {
  int stage = 0, microBatch = 0;
  Pass pass = Pass::Forward;
  bool operator==(const Action &) const = default;
};
/// "backward-input of stage 2, micro-batch 3".
std::string toString(const Action &action);

struct Schedule {
  std::vector<std::vector<Action>> ranks;
  /// By stage: micro-batches of which it has a frame (saved values) at once.
  std::vector<int> frames;
};

/// The kind's own schedule of a problem without fault.
Schedule makeSchedule(const Problem &problem);

/// Frames that each stage has at once: from a forward to the end of the
/// backward, or of its weights' part.
std::vector<int> countFrames(const Problem &problem, const Schedule &schedule);

/// By rank: how many frames each stage has at once, by stage, at those moments
/// of the order at which no other moment has as many of all stages.
std::vector<std::vector<std::vector<int>>> momentsOf(const Problem &problem,
                                                     const Schedule &schedule);

} // namespace accel::pipeline

#endif // ACCEL_PASSES_PIPELINESCHEDULES_SCHEDULE_H
