//===- MegatronModules.h - Parts of a layer that Megatron names -*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Arguments of Megatron-Core that name parts of a transformer layer
// (megatron/core/transformer/transformer_config.py).
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_MEGATRONMODULES_H
#define ACCEL_RUNTIME_PLAN_MEGATRONMODULES_H

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace accel::plan {

/// `recompute_modules` of selective recomputation.
enum class RecomputeModule : uint8_t {
  CoreAttention,    // scores, softmax and their product with values
  MlaUpProjection,  // queries, keys and values from their latent forms, with
                    // rotary positions
  Experts,          // the router and the mixture
  ExpertActivation, // between the two products of an expert
  Norms,            // those that are kernels of their own
  Mlp,              // of a layer without experts
  SharedExperts
};

/// `cuda_graph_scope`, and Iteration for cuda_graph_impl full_iteration.
enum class GraphedPart : uint8_t {
  Attention, // and what stands before the mixture
  Mamba,     // a layer of states
  Router,
  Preprocess, // counts of rows for the ranks of experts
  Mlp,
  Experts,
  Iteration // every kernel of forward and backward
};

template <typename Part> struct NamedPart {
  Part part;
  const char *name;
};

inline constexpr std::array<NamedPart<RecomputeModule>, 7> recomputeModules = {
    {{RecomputeModule::CoreAttention, "core_attn"},
     {RecomputeModule::MlaUpProjection, "mla_up_proj"},
     {RecomputeModule::Experts, "moe"},
     {RecomputeModule::ExpertActivation, "moe_act"},
     {RecomputeModule::Norms, "layernorm"},
     {RecomputeModule::Mlp, "mlp"},
     {RecomputeModule::SharedExperts, "shared_experts"}}};
inline constexpr std::array<NamedPart<GraphedPart>, 7> graphedParts = {
    {{GraphedPart::Attention, "attn"},
     {GraphedPart::Mamba, "mamba"},
     {GraphedPart::Router, "moe_router"},
     {GraphedPart::Preprocess, "moe_preprocess"},
     {GraphedPart::Mlp, "mlp"},
     {GraphedPart::Experts, "moe"},
     {GraphedPart::Iteration, "full_iteration"}}};

/// A set of named parts.
template <typename Part> class PartSet {
public:
  bool has(Part part) const { return bits >> static_cast<int>(part) & 1; }
  void add(Part part) { bits |= 1U << static_cast<int>(part); }
  bool empty() const { return bits == 0; }
  bool operator==(const PartSet &) const = default;

private:
  uint32_t bits = 0;
};
using RecomputeModules = PartSet<RecomputeModule>;
using GraphedParts = PartSet<GraphedPart>;

/// The part of that name, or nothing.
template <typename Part, size_t N>
std::optional<Part> partNamed(const std::array<NamedPart<Part>, N> &parts,
                              std::string_view name) {
  for (const NamedPart<Part> &p : parts)
    if (name == p.name)
      return p.part;
  return std::nullopt;
}

/// "core_attn, mla_up_proj, ..."
template <typename Part, size_t N>
std::string namesOf(const std::array<NamedPart<Part>, N> &parts) {
  std::string names;
  for (const NamedPart<Part> &p : parts)
    names += (names.empty() ? "" : ", ") + std::string(p.name);
  return names;
}

/// What a request to recompute a module, or to replay a part, is called.
inline std::string recomputeRequest(std::string_view name) {
  return "recompute_" + std::string(name);
}
inline std::string graphRequest(std::string_view name) {
  return "graph_" + std::string(name);
}

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_MEGATRONMODULES_H
