//===- BackgroundWriter.cpp - Checkpoints behind the step -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/BackgroundWriter.h"

#include "runtime/checkpoint/ShardImage.h"

#include <ATen/ops/empty.h>

#include <cstring>

namespace accel::run {

struct BackgroundWriter::Checkpoint {
  Checkpoint(Executor &executor, const std::string &dir,
             const TrainState &state)
      : folder(executor, dir, state), image(executor, state) {}
  CheckpointFolder folder;
  ShardImage image;
  std::vector<const char *> copies; // by tensor
  ShardFile file;
  std::string failure;
};

BackgroundWriter::BackgroundWriter(Executor &executor, std::string dir,
                                   int64_t keep)
    : executor(executor), dir(std::move(dir)), keep(keep) {}

BackgroundWriter::~BackgroundWriter() {
  if (thread.joinable())
    thread.join();
}

void BackgroundWriter::begin(const TrainState &state) {
  auto next = std::make_unique<Checkpoint>(executor, dir, state);
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
        plain[i].resize(flat.nbytes());
        std::memcpy(plain[i].data(), flat.const_data_ptr(), flat.nbytes());
        next->copies.push_back(plain[i].data());
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
  next->image.flats.clear();
  current = std::move(next);
  writing = true;
  thread = std::thread([this] {
    Checkpoint &checkpoint = *current;
    const auto &tensors = checkpoint.image.header.tensors;
    try {
      checkpoint.file = checkpoint.image.write(
          checkpoint.folder.path(), [&](File &file, size_t i) {
            file.writeAt(tensors[i].offset, checkpoint.copies[i],
                         tensors[i].numel() * plan::itemSize(tensors[i].dtype));
          });
    } catch (const std::exception &error) {
      checkpoint.failure = error.what();
    }
    writing = false;
  });
}

void BackgroundWriter::finish() {
  thread.join();
  const std::unique_ptr<Checkpoint> done = std::move(current);
  done->folder.stage([&] {
    if (!done->failure.empty())
      throw FileError(done->failure);
  });
  done->folder.complete(done->file, keep);
}

} // namespace accel::run
