//===- WeightFiles.h - Where a checkpoint has its weights -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Which files of a folder are the model's, and under which keys of a file its
// weights lie.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_CHECKPOINT_WEIGHTFILES_H
#define ACCEL_FRONTENDS_CHECKPOINT_WEIGHTFILES_H

#include "frontends/Checkpoint/StateKeys.h"

#include <filesystem>

namespace accel::checkpoint {

/// Whether a part's tensors are weights, as its format and name say; it may
/// hold an optimizer beside them.
bool isWeights(const Part &part);

/// Looks at the files of `folder`, which lies in the checkpoint at `root`, as
/// transformers does: model.safetensors stands for the folder's weights, else
/// the files of its index, else pytorch_model.bin, else those of its index.
/// Says of other weights in it that they are not read. False, reported, where a
/// file or tensor of the index is missing.
bool chooseWeights(const std::filesystem::path &root,
                   const std::filesystem::path &folder,
                   std::vector<Part> &parts, DiagnosticEngine &diagnostics);

/// The Trainer exports the model beside the state of DeepSpeed or FSDP, which
/// has it in the dtype that is trained: says of the export that it is not read.
void preferTrainingState(std::vector<Part> &parts);

/// What a tensor of a part is to the model.
enum class Role {
  Weight,
  State, // of an optimizer beside the model
  Beside // something else beside it
};

/// Where the weights of a part lie, as the keys of its tensors say.
class WeightKeys {
public:
  explicit WeightKeys(const Part &part);

  /// The keys around the weights: {"model"}, {"app", "model"}, or none.
  /// "module" and "state_dict" are such only where no other weights lie beside;
  /// any key is where an optimizer's names of parameters begin below it.
  const std::vector<std::string> &around() const { return keys; }
  Role roleOf(const Tensor &tensor) const;

private:
  bool isBelow(const Tensor &tensor) const;
  bool isOptimizers(const Tensor &tensor) const;
  bool mayBeWeights(const Tensor &tensor) const;
  bool find(size_t depth);
  bool findByStates();
  void choose();
  void findNumbers();
  bool isCounter(const Tensor &tensor) const;

  const Part &part;
  const StateKeys states;
  std::vector<std::string> keys;
  /// Keys of dictionaries beside flat weights that hold numbers alone, and of
  /// counts.
  std::set<std::string> numbers;
  bool optimizer = false; // lies beside them
};

} // namespace accel::checkpoint

#endif // ACCEL_FRONTENDS_CHECKPOINT_WEIGHTFILES_H
