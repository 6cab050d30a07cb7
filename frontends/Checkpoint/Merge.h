//===- Merge.h - A checkpoint as one model folder ---------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Writes the weights of a checkpoint as transformers keeps them: safetensors
// in parts, with an index. Bytes go through one buffer of 4 MiB, so that host
// memory grows with the number of tensors and shards alone.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CHECKPOINT_MERGE_H
#define ACCEL_FRONTENDS_CHECKPOINT_MERGE_H

#include "frontends/Checkpoint/Checkpoint.h"

#include <functional>
#include <list>
#include <map>

namespace accel::checkpoint {

/// A tensor of the model and where in its part it begins.
struct MergedTensor {
  std::string name;
  const Tensor *source = nullptr;
  std::string dtype; // that is written: "float32"
  int64_t bytes = 0; // of it
  int64_t begin = 0; // behind the part's header
};

/// One file that is written.
struct MergedPart {
  std::string name; // "model-00001-of-00002.safetensors"
  std::vector<MergedTensor> tensors;
  int64_t bytes = 0; // of tensors
  std::map<std::string, std::string> metadata = {{"format", "pt"}};
};

struct Merged {
  std::vector<MergedPart> parts;
  int64_t tensors = 0, bytes = 0;
  /// Of tensors that a FinishFolder adds to the folder.
  int64_t bytesBeside = 0;
  /// Tensors that are not written: states of an optimizer, and what lies beside
  /// the weights, which is counted by its key too.
  int64_t leftOut = 0;
  std::map<std::string, int64_t> leftBeside;
  /// Names of those that lie among an optimizer's states and have a kind that
  /// is not known.
  std::vector<std::string> leftStates;
  /// Names of values that are no tensors, but for an optimizer's.
  std::vector<std::string> leftValues;
  /// Files of weights that others stand before, and damaged ones that hold
  /// none of the weights, by what they are.
  std::map<std::string, std::vector<std::string>> unread;
  /// Tensors that no file holds as one, which `parts` refer to.
  std::list<Part> made;
};

struct MergeOptions {
  int64_t partBytes = int64_t(5) * 1000 * 1000 * 1000;
  /// "float32", "float16" or "bfloat16": what tensors of these three and of
  /// float64 become; "": each stays as it is.
  std::string dtype;
};

/// The weights of `read` in the order of their names, in parts of at most
/// `partBytes` (one larger tensor has a part of its own). Reports and returns
/// nothing where there are none, two of one name, or bytes that are not known
/// to be read.
std::optional<Merged> planMerge(const Checkpoint &read,
                                const MergeOptions &options,
                                DiagnosticEngine &diagnostics);

/// Adds files to a folder that gets its name afterwards; false, reported, where
/// that fails.
using FinishFolder = std::function<bool(const std::string &folder)>;

/// Writes `merged` to the folder `output`, which does not exist or is empty:
/// under another name first, so that it is whole once it is there. `done` hears
/// of the bytes written so far; `finish` is called before the folder gets its
/// name.
bool writeMerged(const Merged &merged, const std::string &output,
                 const std::function<void(int64_t)> &done,
                 DiagnosticEngine &diagnostics,
                 const FinishFolder &finish = {});

/// Writes a file of a few bytes durably; reports where that fails.
/// `folderBytes`: as of reportUnwritten.
bool writeSmallFile(const std::string &path, const std::string &text,
                    int64_t folderBytes, DiagnosticEngine &diagnostics);

} // namespace accel::checkpoint

#endif // ACCEL_FRONTENDS_CHECKPOINT_MERGE_H
