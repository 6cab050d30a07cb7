//===- SharedHeads.h - Key-value heads of ranks of a sequence ---*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_MODULETREE_SHAREDHEADS_H
#define ACCEL_FRONTENDS_MODULETREE_SHAREDHEADS_H

#include "frontends/ModuleTree/ModuleTree.h"

#include <optional>
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

} // namespace accel

#endif // ACCEL_FRONTENDS_MODULETREE_SHAREDHEADS_H
