//===- Sharded.h - Checkpoints to continue from -----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A checkpoint is a folder step-00001000 with one safetensors file a rank (its
// flat shards and optimizer states; the header says which elements of which
// parameter stand where) and state.json (State.h). It is written under another
// name and renamed when every rank's file is on the disk, so a folder of that
// name is always complete. Reading needs no old plan: any number of ranks can
// continue. All ranks must see the same file system.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_CHECKPOINT_SHARDED_H
#define ACCEL_RUNTIME_CHECKPOINT_SHARDED_H

#include "runtime/checkpoint/Buffers.h"
#include "runtime/data/SampleOrder.h"
#include "runtime/execute/Executor.h"

#include <functional>
#include <string>

namespace accel::run {

/// What continues beside the tensors.
struct TrainState {
  std::string run;           // RunFolder.h
  int64_t step = 0;          // optimizer steps done
  int64_t microBatch = 0;    // micro-batches of the run done, by all ranks
  double optimizerSteps = 0; // without skipped ones
  LossScaler::State scaler;
  std::string device;      // of the plan: "cpu" or "cuda"
  int64_t tensorRanks = 0; // of tp; 0: not recorded
  std::string optimizer;   // of the plan; empty: not recorded
  SampleOrder samples;     // empty: not recorded
  /// The evaluation after `step` was broken off, and is done when the run goes
  /// on.
  bool evaluationDue = false;
};

/// Writes a checkpoint below `dir`, with the model's `buffers`, then removes
/// the run's oldest but `keep` (0: all stay). `extra` may add files to the
/// folder before it is renamed, on all ranks. Collective. Where one rank fails
/// nothing is left, and all throw FileError: with the reason on the rank that
/// failed.
void saveCheckpoint(Executor &executor, const std::string &dir, int64_t keep,
                    const TrainState &state, const Buffers &buffers,
                    const std::function<void(const std::string &)> &extra = {});

/// Checks every file's hash and fills the shards and states, and those of
/// `buffers` that the checkpoint has, which each rank reads. Collective. Throws
/// FileError.
TrainState loadCheckpoint(Executor &executor, const std::string &folder,
                          Buffers &buffers);

} // namespace accel::run

#endif // ACCEL_RUNTIME_CHECKPOINT_SHARDED_H
