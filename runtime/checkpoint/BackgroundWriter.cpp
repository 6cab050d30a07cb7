//===- BackgroundWriter.cpp - Checkpoints behind the step -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/BackgroundWriter.h"

#include "runtime/checkpoint/ShardImage.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <chrono>
#include <cstring>

namespace accel::run {

namespace {

/// Adds the time of a scope.
class Stopwatch {
public:
  explicit Stopwatch(double &sum) : sum(sum) {}
  ~Stopwatch() {
    sum += std::chrono::duration<double>(Clock::now() - start).count();
  }
  Stopwatch(const Stopwatch &) = delete;
  Stopwatch &operator=(const Stopwatch &) = delete;

private:
  using Clock = std::chrono::steady_clock;
  double &sum;
  Clock::time_point start = Clock::now();
};

} // namespace

struct BackgroundWriter::Checkpoint {
  Checkpoint(Executor &executor, const Buffers &buffers, const std::string &dir,
             const TrainState &state)
      : folder(executor, dir, state), image(executor, state, buffers) {}
  CheckpointFolder folder;
  ShardImage image;
  std::vector<const char *> copies; // by tensor
  ShardFile file;
  std::string failure;
  bool published = false; // the folder gets its name, or has it
};

BackgroundWriter::BackgroundWriter(Executor &executor, const Buffers &buffers,
                                   std::string dir, int64_t keep,
                                   std::function<void()> published)
    : executor(executor), buffers(buffers), dir(std::move(dir)), keep(keep),
      published(std::move(published)) {
  executor.beforeUpdate([this](int unit) { awaitCopy(unit); });
}

BackgroundWriter::~BackgroundWriter() {
  executor.beforeUpdate({});
  if (thread.joinable())
    thread.join();
}

void BackgroundWriter::begin(const TrainState &state) {
  const Stopwatch watch(waited);
  ++checkpoints;
  auto next = std::make_unique<Checkpoint>(executor, buffers, dir, state);
  next->folder.make();
  const bool host = executor.device().device().is_cpu();
  const std::vector<at::Tensor> &flats = next->image.flats;
  // The shards have the same sizes each time.
  plain.resize(host ? flats.size() : 0);
  pinned.resize(host ? 0 : flats.size());
  next->folder.stage([&] {
    for (size_t i = 0; i < flats.size(); ++i) {
      const at::Tensor &flat = flats[i];
      if (host) {
        // The thread is the first to touch it.
        if (!plain[i])
          plain[i].reset(static_cast<char *>(
              std::malloc(std::max<size_t>(flat.nbytes(), 1))));
        if (!plain[i])
          throw FileError("no memory for a copy of " +
                          std::to_string(flat.nbytes()) +
                          " bytes; without background: true none is made");
        next->copies.push_back(plain[i].get());
        continue;
      }
      if (!pinned[i].defined())
        pinned[i] = at::empty(
            flat.sizes(), flat.options().device(at::kCPU).pinned_memory(true));
      pinned[i].copy_(flat, /*non_blocking=*/true);
      next->copies.push_back(
          static_cast<const char *>(pinned[i].const_data_ptr()));
    }
    executor.device().synchronize();
  });
  copied = host ? 0 : flats.size();
  current = std::move(next);
  behind([this](Checkpoint &checkpoint) {
    copyOnHost(checkpoint);
    const auto &tensors = checkpoint.image.header.tensors;
    checkpoint.file = checkpoint.image.write(
        checkpoint.folder.path(), [&](File &file, size_t i) {
          file.writeAt(tensors[i].offset, checkpoint.copies[i],
                       tensors[i].numel() * plan::itemSize(tensors[i].dtype));
        });
  });
}

void BackgroundWriter::behind(std::function<void(Checkpoint &)> work) {
  working = true;
  thread = std::thread([this, work = std::move(work)] {
    try {
      work(*current);
    } catch (const std::exception &error) {
      current->failure = error.what();
    }
    working = false;
  });
}

/// Copies what is not copied yet; nothing of it throws, so that no update waits
/// for ever.
void BackgroundWriter::copyOnHost(Checkpoint &checkpoint) {
  const std::vector<at::Tensor> &flats = checkpoint.image.flats;
  for (size_t i = copied; i < flats.size(); ++i) {
    std::memcpy(plain[i].get(), flats[i].const_data_ptr(), flats[i].nbytes());
    {
      const std::lock_guard lock(mutex);
      copied = i + 1;
    }
    progress.notify_all();
  }
}

void BackgroundWriter::awaitCopy(int unit) {
  if (!current)
    return;
  // A unit's tensors stand side by side, and units in their order.
  const std::vector<int> &units = current->image.units;
  const size_t needed =
      std::upper_bound(units.begin(), units.end(), unit) - units.begin();
  std::unique_lock lock(mutex);
  if (copied >= needed)
    return;
  const Stopwatch watch(waited);
  progress.wait(lock, [&] { return copied >= needed; });
}

void BackgroundWriter::advance() {
  const Stopwatch watch(waited);
  thread.join();
  try {
    current->folder.stage([&] {
      if (!current->failure.empty())
        throw FileError(current->failure);
    });
  } catch (const FileError &) {
    current.reset();
    throw;
  }
  if (current->published) {
    current.reset();
    return;
  }
  current->published = true;
  const std::vector<ShardFile> files = current->folder.gather(current->file);
  behind([this, files](Checkpoint &checkpoint) {
    if (executor.groups().rank() != 0)
      return;
    checkpoint.folder.publish(files, keep);
    published();
  });
}

void BackgroundWriter::finish() {
  while (pending())
    advance();
}

} // namespace accel::run
