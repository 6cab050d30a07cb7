//===- BackgroundWriter.h - Checkpoints behind the step ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A thread copies the shards and states in host memory, then writes, hashes and
// syncs the copy. On CPUs it copies beside the next step's forward and backward
// pass, which only read them; the update of a unit waits until that unit is
// copied. Of a GPU the copy is complete before the next step is queued.
// When every rank has written, at the end of some later step, the first rank's
// thread gives the folder its name and removes old ones, so that a folder of
// that name still is always complete.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_CHECKPOINT_BACKGROUNDWRITER_H
#define ACCEL_RUNTIME_CHECKPOINT_BACKGROUNDWRITER_H

#include "runtime/checkpoint/Sharded.h"

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace accel::run {

class BackgroundWriter {
public:
  /// `published` is called on the first rank, by the thread, when a folder has
  /// its name. `buffers` outlive it.
  BackgroundWriter(Executor &executor, const Buffers &buffers, std::string dir,
                   int64_t keep, std::function<void()> published);
  ~BackgroundWriter();
  BackgroundWriter(const BackgroundWriter &) = delete;
  BackgroundWriter &operator=(const BackgroundWriter &) = delete;

  /// Begins a checkpoint; none may be pending. Collective. Throws as
  /// saveCheckpoint does.
  void begin(const TrainState &state);
  /// A checkpoint was begun and is not complete; the same on all ranks.
  bool pending() const { return current != nullptr; }
  /// This rank's thread is at work.
  bool works() const { return working; }
  /// Goes on where no rank's thread is at work: to the folder's name, and from
  /// there to the end. Collective. Throws as saveCheckpoint does.
  void advance();
  /// Waits for all ranks' files and completes the checkpoint. Collective.
  /// Throws as saveCheckpoint does.
  void finish();
  /// Checkpoints that were begun, and how long training waited for them.
  int64_t begun() const { return checkpoints; }
  double waitedSeconds() const { return waited; }

private:
  struct Checkpoint;
  void copyOnHost(Checkpoint &checkpoint);
  void awaitCopy(int unit);
  /// Has the thread do `work`, and keeps what it throws.
  void behind(std::function<void(Checkpoint &)> work);

  Executor &executor;
  const Buffers &buffers;
  std::string dir;
  int64_t keep;
  std::function<void()> published;
  std::unique_ptr<Checkpoint> current;
  /// Copies of tensors, kept from one checkpoint to the next: plain memory, or
  /// pinned where the device is a GPU.
  struct Free {
    void operator()(char *memory) const { std::free(memory); }
  };
  std::vector<std::unique_ptr<char, Free>> plain;
  std::vector<at::Tensor> pinned;
  /// Tensors of `current` that are copied, in order.
  size_t copied = 0;
  std::mutex mutex; // of `copied`
  std::condition_variable progress;
  int64_t checkpoints = 0;
  double waited = 0;
  std::atomic<bool> working = false;
  std::thread thread;
};

} // namespace accel::run

#endif // ACCEL_RUNTIME_CHECKPOINT_BACKGROUNDWRITER_H
