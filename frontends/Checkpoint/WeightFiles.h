//===- WeightFiles.h - Where a checkpoint has its weights -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Which files of a folder are the model's; WeightKeys.h says which of their
// tensors are.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CHECKPOINT_WEIGHTFILES_H
#define ACCEL_FRONTENDS_CHECKPOINT_WEIGHTFILES_H

#include "frontends/Checkpoint/Checkpoint.h"

#include <filesystem>

namespace accel::checkpoint {

/// Whether a part's tensors are weights, as its format and name say; it may
/// hold an optimizer beside them.
bool isWeights(const Part &part);

/// Looks at the files of `folder`, which lies in the checkpoint at `root`, as
/// transformers does: model.safetensors stands for the folder's weights, else
/// the files of its index, else pytorch_model.bin, else those of its index.
/// Says of other weights in it that they are not read, and of folders below
/// that keep no training state of this model that they stand apart. False,
/// reported, where a file or tensor of the index is missing.
bool chooseWeights(const std::filesystem::path &root,
                   const std::filesystem::path &folder,
                   std::vector<Part> &parts, DiagnosticEngine &diagnostics);

/// The Trainer exports the model beside the state of DeepSpeed or FSDP, which
/// has it in the dtype that is trained: says of the export that it is not read.
void preferTrainingState(std::vector<Part> &parts);

/// Puts one part without tensors in place of each folder that stands apart: a
/// reader of weights and states names it and meets nothing of it.
void foldApart(std::vector<Part> &parts);

} // namespace accel::checkpoint

#endif // ACCEL_FRONTENDS_CHECKPOINT_WEIGHTFILES_H
