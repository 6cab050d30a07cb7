//===- Stages.h - The stages of a pipeline ----------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Ranks that differ along the axis pp have different parts of the model: a
// stage holds units and has programs of its own, of one chunk of the model or
// of several (virtual stages; ChunkLayout in Chunks.h says which). A step is
// the order in which a stage's ranks run the parts of its programs, chunk by
// chunk and micro-batch by micro-batch.
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

/// The instructions of a program up to its first Pause, and behind each. Which
/// of them a program has depends on the schedule (partsBy).
enum class Part {
  Forward,
  Backward, // by zb-h1 and zb-v what the stage before waits for alone
  Settle,   // what the backward has sent is there; sums with other stages
  Update,   // of the last micro-batch: norm and updates
  Weights,  // gradients of parameters, and what follows them
};
const char *toString(Part part);

inline constexpr const char *zeroBubbleH1 = "zb-h1";
/// The parts that programs of a schedule have, in their order. Only the last
/// micro-batch's has the Update.
const std::vector<Part> &partsBy(const std::string &schedule);

/// "stage 1", "stage 1, chunk 1".
std::string chunkName(int stage, int chunk);

/// One part of one micro-batch.
struct StageAction {
  Part part = Part::Forward;
  int64_t microBatch = 0; // of the step
  int chunk = 0;
  bool operator==(const StageAction &) const = default;
};

/// The programs of one chunk of a stage.
struct Chunk {
  /// Programs by index, with their repeat counts: those of the micro-batches in
  /// their order.
  std::vector<std::pair<int, int64_t>> step;
  int eval = -1; // program, or none
  bool operator==(const Chunk &) const = default;
};

/// What the ranks of one stage do, and what it takes on each of them.
struct Stage : Chunk { // the first one
  std::vector<Chunk> further;
  std::vector<StageAction> order;
  int64_t frames = 0; // micro-batches between their parts, of all chunks
  // Predicted, as Plan::predicted is of the stage that takes most.
  int64_t peakBytes = 0, ownPeakBytes = 0, persistentBytes = 0;
  double busySeconds = 0; // of a step: the rest is bubble and communication
  bool operator==(const Stage &) const = default;
};

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_STAGES_H
