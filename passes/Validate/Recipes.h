//===- Recipes.h - Published recipes of Megatron's kin ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What recipes set beyond the columns of the tables that they were measured
// for: passes/Validate/data/recipes.json, which test/bench/bridge_recipes.py
// makes of Megatron-Bridge's releases.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_VALIDATE_RECIPES_H
#define ACCEL_PASSES_VALIDATE_RECIPES_H

#include "runtime/plan/MegatronModules.h"

namespace accel::validate {

/// What a run is known by.
struct RecipeQuery {
  std::string framework; // "megatron-bridge", "nemo"
  std::string release;   // "26.04.01"
  std::string model;     // modelKey
  std::string gpu;       // in lower case
  std::string precision; // as tables spell it, in lower case
  int64_t microBatch = 1, stages = 1;
};

struct Recipe {
  plan::RecomputeModules recompute;
  plan::GraphedParts graphs;
  std::string dispatcher; // "hybridep", "deepep"; empty: all-to-all
  bool overlapsExperts = false;
  bool fusedExperts = false;   // ExpertRanks::fused
  bool narrowStates = false;   // exp_avg_dtype and exp_avg_sq_dtype: bf16
  bool fsdp = false;           // use_megatron_fsdp
  int64_t tokenPredictors = 0; // mtp_num_layers
  bool engineLoss = false;     // KernelSet::TransformerEngineLoss
  int64_t offloadedLayers = 0; // cpu_offloading_num_layers
  int64_t chunks = 0;          // of layers in each stage; 0: not said
};

/// The recipe of a run, or nothing: a run with another micro-batch or other
/// stages than the recipe's was none of it.
std::optional<Recipe> findRecipe(const RecipeQuery &query);

} // namespace accel::validate

#endif // ACCEL_PASSES_VALIDATE_RECIPES_H
