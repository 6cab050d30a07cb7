//===- Recipes.cpp - Published recipes of Megatron's kin ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Validate/Recipes.h"

#include "passes/Validate/KnownRecipes.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace accel::validate {

using nlohmann::json;

/// A recipe that does not say a key is of all values.
static bool applies(const json &recipe, const RecipeQuery &query) {
  auto is = [&](const char *key, const json &value) {
    const auto found = recipe.find(key);
    return found == recipe.end() || *found == value;
  };
  if (const auto releases = recipe.find("releases");
      releases != recipe.end() &&
      std::none_of(releases->begin(), releases->end(),
                   [&](const json &one) { return one == query.release; }))
    return false;
  return is("framework", query.framework) && is("model", query.model) &&
         is("gpu", query.gpu) && is("precision", query.precision) &&
         is("micro_batch", query.microBatch) && is("stages", query.stages);
}

template <typename Part, size_t N>
static plan::PartSet<Part>
partsOf(const json &recipe, const char *key,
        const std::array<plan::NamedPart<Part>, N> &parts) {
  plan::PartSet<Part> set;
  for (const json &name : recipe.value(key, json::array()))
    if (const auto part = plan::partNamed(parts, name.get<std::string>()))
      set.add(*part);
  return set;
}

std::optional<Recipe> findRecipe(const RecipeQuery &query) {
  static const json recipes = json::parse(knownRecipes);
  const auto found =
      std::find_if(recipes.begin(), recipes.end(),
                   [&](const json &one) { return applies(one, query); });
  if (found == recipes.end())
    return std::nullopt;
  const json &recipe = *found;
  Recipe result;
  result.recompute =
      partsOf(recipe, "recompute_modules", plan::recomputeModules);
  result.graphs = partsOf(recipe, "cuda_graph_scope", plan::graphedParts);
  result.dispatcher = recipe.value("dispatcher", "");
  result.overlapsExperts = recipe.value("overlap_experts", false);
  result.fusedExperts = recipe.value("fused_experts", false);
  result.engineLoss = recipe.value("cross_entropy", "") == "te";
  result.offloadedLayers = recipe.value("cpu_offloading_num_layers", 0);
  result.narrowStates = recipe.value("state_dtype", "") == "bf16";
  result.fsdp = recipe.value("fsdp", false);
  result.tokenPredictors = recipe.value("mtp_num_layers", int64_t(0));
  result.chunks = recipe.value("chunks", int64_t(0));
  return result;
}

} // namespace accel::validate
