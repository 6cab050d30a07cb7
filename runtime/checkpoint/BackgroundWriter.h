//===- BackgroundWriter.h - Checkpoints behind the step ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A step waits for a copy of the shards and states in host memory alone; a
// thread writes, hashes and syncs it. The folder gets its name when every rank
// has written, at the end of some later step, so that a folder of that name
// still is always complete.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_CHECKPOINT_BACKGROUNDWRITER_H
#define ACCEL_RUNTIME_CHECKPOINT_BACKGROUNDWRITER_H

#include "runtime/checkpoint/Sharded.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace accel::run {

class BackgroundWriter {
public:
  BackgroundWriter(Executor &executor, std::string dir, int64_t keep);
  ~BackgroundWriter();
  BackgroundWriter(const BackgroundWriter &) = delete;
  BackgroundWriter &operator=(const BackgroundWriter &) = delete;

  /// Begins a checkpoint; none may be pending. Collective. Throws as
  /// saveCheckpoint does.
  void begin(const TrainState &state);
  /// A checkpoint was begun and is not complete; the same on all ranks.
  bool pending() const { return current != nullptr; }
  /// This rank's file is not yet on the disk.
  bool writes() const { return writing; }
  /// Waits for all ranks' files and completes the checkpoint. Collective.
  /// Throws as saveCheckpoint does.
  void finish();

private:
  struct Checkpoint;

  Executor &executor;
  std::string dir;
  int64_t keep;
  std::unique_ptr<Checkpoint> current;
  /// Copies of tensors, kept from one checkpoint to the next: plain memory, or
  /// pinned where the device is a GPU.
  std::vector<std::vector<char>> plain;
  std::vector<at::Tensor> pinned;
  std::atomic<bool> writing = false;
  std::thread thread;
};

} // namespace accel::run

#endif // ACCEL_RUNTIME_CHECKPOINT_BACKGROUNDWRITER_H
