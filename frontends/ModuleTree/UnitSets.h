//===- UnitSets.h - Which parameters form a unit ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The unit sets that Accelerate makes of a wrap policy, without MLIR:
// version 2 as fsdp2_prepare_model of Accelerate 1.15 does (bottom-up
// fully_shard of each match, the embedding and the tail as units of their own,
// a root unit for the rest), version 1 as torch's FSDP auto-wrap, version 0 is
// plain replication with one unit per layer. `wrap` decides with it.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_MODULETREE_UNITSETS_H
#define ACCEL_FRONTENDS_MODULETREE_UNITSETS_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace accel::wrap {

struct Module {
  std::string fqn, className;
};
struct Parameter {
  std::string fqn;
  std::vector<std::string> aliases;
  int64_t numel = 0;
  bool trainable = true;
};

enum class Policy { None, Transformer, Size };

struct Problem {
  std::vector<Module> modules; // named_modules() order, root first
  std::vector<Parameter> parameters;
  std::vector<std::string> noSplit; // the model's _no_split_modules
  std::string base, inputEmbedding, outputEmbedding; // FQNs, or ""
  int fsdpVersion = 2;                               // 0: replication, 1, 2
  Policy policy = Policy::None;
  std::optional<std::vector<std::string>> classes; // unset: noSplit
  int64_t minParams = 0;
  std::string ignoredModules; // regular expression, matched on whole FQNs
  /// Of FSDP1: a module without children whose weight is trained is a unit too
  /// (peft.utils.other.fsdp_auto_wrap_policy, which transformers' Trainer and
  /// PEFT's examples set), so that an adapter has flat parameters of its own.
  bool trainedLeaves = false;
  /// FSDP2 under Accelerate until 1.13: no units for the embedding, the final
  /// norm and the head.
  bool restInRoot = false;
  /// The root is told to reshard, and torch listens (from 2.8 on).
  bool rootReshards = false;
  /// Tied embeddings end up in two groups (Accelerate 1.14), which torch
  /// refuses (from 2.13 on).
  bool refuseTies = false;
  /// A unit may hold the input embedding beside other parameters: accel-run can
  /// do that, Accelerate would wrap the embedding a second time.
  bool embeddingInside = false;
  /// Reasons of the units that no match holds: the embedding and the tail, and
  /// the root.
  std::string endsWhy = "Accelerate 1.15 wraps it by itself";
  std::string rootWhy = "the root: Accelerate before 1.14 wraps nothing else";
  /// Neighbouring layers, the elements of a list of modules, of one unit; torch
  /// calls it fully_shard of a list. Accelerate has one.
  int64_t layersPerUnit = 1;
};

struct UnitSet {
  std::string name; // FQN of its first module; "" is the root
  std::vector<std::string> modules;
  std::vector<int> parameters; // Problem::parameters, in order
  bool keepGathered = false;   // Accelerate's tail and torch's root
  bool ignored = false;        // replicated: matched ignored_modules
  std::string why;
};

struct Solution {
  std::vector<UnitSet> units; // in order of first parameter; none is empty
  std::string error;          // one sentence, if wrapping fails
  std::string errorHint;      // what to write instead
};

Solution solve(const Problem &problem);

/// Every parameter is in exactly one unit, units are not empty: the first
/// violation as a sentence, or "".
std::string verify(const Problem &problem, const Solution &solution);

} // namespace accel::wrap

#endif // ACCEL_FRONTENDS_MODULETREE_UNITSETS_H
