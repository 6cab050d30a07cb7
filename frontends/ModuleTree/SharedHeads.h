//===- SharedHeads.h - What ranks inside of a layer can share ---*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_MODULETREE_SHAREDHEADS_H
#define ACCEL_FRONTENDS_MODULETREE_SHAREDHEADS_H

#include "frontends/ModuleTree/ModuleTree.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

namespace accel {

/// Why DeepSpeed stops where `ranks` of its sequence parallelism share
/// key-value heads (UlyssesSPAttentionHF of
/// runtime/sequence_parallel/ulysses_sp.py), and the fix; nothing where they
/// can.
inline std::optional<std::pair<std::string, std::string>>
undividedKeyHeads(const ModuleTree &tree, int64_t ranks) {
  const int64_t keys = tree.sizes.keyValueHeads;
  if (keys == 0 || keys % ranks == 0 || ranks % keys == 0)
    return std::nullopt;
  return std::pair{std::to_string(keys) + " key-value heads of " +
                       tree.architecture + " and sp_size " +
                       std::to_string(ranks) +
                       " do not divide each other; every rank stops with a "
                       "ValueError",
                   "write a divisor or a multiple of " + std::to_string(keys)};
}

/// "1, 2, 4 or 8": the numbers of tensor-parallel ranks that divide the heads
/// and the features of each MLP.
inline std::string tensorSizes(const ModuleTree &tree) {
  int64_t common = std::gcd(tree.sizes.heads, tree.sizes.keyValueHeads);
  for (const TreeParameter &p : tree.parameters)
    if (p.fqn.ends_with(".up_proj.weight") && p.shape.size() == 2)
      common = std::gcd(common, p.shape[0]);
  std::string text;
  for (int64_t size = 1; size <= common; ++size) {
    if (common % size)
      continue;
    text += (size == 1 ? "" : size < common ? ", " : " or ");
    text += std::to_string(size);
  }
  return text;
}

/// Why `ranks` of tp cannot share a layer's heads, which are dealt out whole,
/// and the fix; nothing where they can.
inline std::optional<std::pair<std::string, std::string>>
undividedHeads(const ModuleTree &tree, int64_t ranks) {
  const TreeSizes &sizes = tree.sizes;
  const bool queries = sizes.heads % ranks != 0;
  if (!queries && (!sizes.keyValueHeads || sizes.keyValueHeads % ranks == 0))
    return std::nullopt;
  return std::pair{
      (queries ? std::to_string(sizes.heads) + " attention heads of "
               : std::to_string(sizes.keyValueHeads) + " key-value heads of ") +
          tree.architecture + " cannot be divided among tp_size " +
          std::to_string(ranks) + " ranks",
      "write tp_size " + tensorSizes(tree)};
}

/// Layers of which ranks cannot share a sequence by Accelerate's parallelism.
struct UnsharedLayers {
  /// "32 of 32 layers of MistralForCausalLM attend to a window".
  std::string layers;
  const char *code;
  std::string message, hint;
};

/// "36 of 48 layers of Qwen3NextForCausalLM carry a state along the sequence";
/// empty where none does.
inline std::string recurrentLayers(const ModuleTree &tree) {
  const int64_t states =
      std::count(tree.blocks.begin(), tree.blocks.end(), "linear") +
      std::count(tree.blocks.begin(), tree.blocks.end(), "mamba");
  return states == 0
             ? ""
             : std::to_string(states) + " of " +
                   std::to_string(tree.blocks.size()) + " layers of " +
                   tree.architecture + " carry a state along the sequence";
}

/// Layers with a window under context parallelism, and layers with a state
/// under that and under `sequence`, DeepSpeed's; nothing where there are none.
/// accelerate 1.15 refuses both (_attach_context_parallel_hooks and
/// _refuse_recurrent_layers_under_sequence_parallelism in
/// accelerate/big_modeling.py); `older`: a release before, else empty.
inline std::optional<UnsharedLayers> unsharedLayers(const ModuleTree &tree,
                                                    bool sequence,
                                                    const std::string &older) {
  std::string layers = recurrentLayers(tree);
  const char *trains = "starts their state anew on every rank";
  if (const int64_t windows = std::count(
          tree.attention.begin(), tree.attention.end(), Attention::Sliding);
      !sequence && layers.empty() && windows) {
    layers = std::to_string(windows) + " of " +
             std::to_string(tree.attention.size()) + " layers of " +
             tree.architecture + " attend to a window";
    trains = "trains them as full attention";
  }
  if (layers.empty())
    return std::nullopt;
  const std::string does =
      older.empty()
          ? std::string(", which ") + (sequence ? "sequence" : "context") +
                " parallelism cannot do: every rank stops with a ValueError"
          : "; accelerate " + older + " " + trains + " and says nothing";
  return UnsharedLayers{layers, sequence ? "sp-attention" : "cp-attention",
                        layers + does,
                        std::string("leave ") + (sequence ? "sp" : "cp") +
                            "_size at 1 for this model"};
}

} // namespace accel

#endif // ACCEL_FRONTENDS_MODULETREE_SHAREDHEADS_H
