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

/// "32 of 32 layers of MistralForCausalLM attend to a window"; empty where none
/// does.
inline std::string windowedLayers(const ModuleTree &tree) {
  const int64_t windows = std::count(tree.attention.begin(),
                                     tree.attention.end(), Attention::Sliding);
  return windows == 0
             ? ""
             : std::to_string(windows) + " of " +
                   std::to_string(tree.attention.size()) + " layers of " +
                   tree.architecture + " attend to a window";
}

/// accelerate 1.15 refuses such layers (_attach_context_parallel_hooks in
/// accelerate/big_modeling.py); before, they are trained as full attention.
constexpr const char *windowsStop = ", which context parallelism cannot do: "
                                    "every rank stops with a ValueError";
constexpr const char *leaveContext = "leave cp_size at 1 for this model";

} // namespace accel

#endif // ACCEL_FRONTENDS_MODULETREE_SHAREDHEADS_H
