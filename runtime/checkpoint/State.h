//===- State.h - state.json of a checkpoint ---------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// state.json says what continues beside the tensors, and which files belong to
// the checkpoint with the SHA-256 of each. It holds its own hash as well, so
// that a checkpoint is what its run has written, byte for byte.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_CHECKPOINT_STATE_H
#define ACCEL_RUNTIME_CHECKPOINT_STATE_H

#include "runtime/checkpoint/Sharded.h"

#include <string>
#include <vector>

namespace accel::run {

struct ShardFile {
  std::string name; // in the checkpoint's folder
  int64_t bytes = 0;
  std::string sha256; // 64 hexadecimal digits
};

/// Writes state.json into `folder`.
void writeState(const std::string &folder, const plan::Plan &plan,
                const TrainState &state, const std::vector<ShardFile> &files);

/// Reads and checks it. `microBatch` of the result counts micro-batches of the
/// plan's size. Throws FileError where a number cannot be what a run has
/// written, or the file was changed.
TrainState readState(const std::string &folder, const plan::Plan &plan,
                     std::vector<ShardFile> &files);

/// A state.json is no larger: one of thousands of data files has a few MiB.
constexpr int64_t maxStateBytes = int64_t(256) << 20;

/// Whose a checkpoint is.
struct CheckpointRun {
  std::string run;      // empty: nothing in the folder says it
  bool damaged = false; // state.json is not what the run has written
};
/// By state.json or, where that is damaged, by the shards.
CheckpointRun runOf(const std::string &folder);

/// Throws FileError unless the file is what `file` says.
void verifyShard(const std::string &folder, const ShardFile &file);

} // namespace accel::run

#endif // ACCEL_RUNTIME_CHECKPOINT_STATE_H
