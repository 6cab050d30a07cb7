//===- ShardImage.h - The parts of writing a checkpoint ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_CHECKPOINT_SHARDIMAGE_H
#define ACCEL_RUNTIME_CHECKPOINT_SHARDIMAGE_H

#include "runtime/checkpoint/Buffers.h"
#include "runtime/checkpoint/Files.h"
#include "runtime/checkpoint/Safetensors.h"
#include "runtime/checkpoint/Sharded.h"
#include "runtime/checkpoint/State.h"

#include <functional>
#include <string>
#include <vector>

namespace accel::run {

/// A rank's file: tensor "<unit>.param" and one for each state. The first
/// rank's has "buffers.NAME" of each persistent buffer of the model behind
/// them: nothing reads it to go on, who merges the weights has the whole model.
struct ShardImage {
  /// `buffers` outlive it.
  ShardImage(Executor &executor, const TrainState &state,
             const Buffers &buffers);

  std::string name; // empty: the rank has nothing to write
  std::string head; // the file's first bytes
  SafetensorsHeader header;
  std::vector<at::Tensor> flats; // in the header's order, buffers follow
  std::vector<int> units;        // whose they are

  std::vector<const std::vector<char> *> constants; // bytes of the buffers

  /// Writes the file; `put` writes flat tensor i where the header says.
  using Put = std::function<void(File &file, size_t i)>;
  ShardFile write(const std::string &folder, const Put &put) const;
};

/// The folder of a checkpoint on its way. Each step is collective and ends with
/// all ranks knowing whether it went well everywhere: else nothing is left, and
/// all throw FileError, with the reason on the rank that failed.
class CheckpointFolder {
public:
  CheckpointFolder(Executor &executor, const std::string &dir,
                   const TrainState &state);
  /// Where ranks write until it is complete.
  const std::string &path() const { return temporary; }
  void make();
  void stage(const std::function<void()> &work);
  /// Renames it, once every rank has written its own file.
  void complete(const ShardFile &own, int64_t keep,
                const std::function<void(const std::string &)> &extra = {});
  /// The parts of `complete`: what each rank has written, on all ranks
  /// (collective), and what the first rank does then, by itself.
  std::vector<ShardFile> gather(const ShardFile &own);
  void publish(const std::vector<ShardFile> &files, int64_t keep);

private:
  Executor &executor;
  std::string dir;
  TrainState state;
  std::string target, temporary;
};

} // namespace accel::run

#endif // ACCEL_RUNTIME_CHECKPOINT_SHARDIMAGE_H
