//===- MegatronRecompute.cpp - Megatron's selective recomputation ---------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/StepModel/MegatronRecompute.h"

#include "passes/StepModel/SegmentOrder.h"
#include "passes/StepModel/TrainerKernels.h"

#include <algorithm>
#include <set>

namespace accel {
namespace {

using plan::Instruction;

class Marker {
public:
  Marker(SegmentGraph &graph, const plan::RecomputeModules &modules)
      : graph(graph), function(graph.function), modules(modules) {}

  void run() {
    graph.child.assign(function.instructions.size(), -1);
    graph.discards.clear();
    mixture = anyIs(".mlp.experts") || anyIs(".mixer.experts");
    hybrid = anyIs(".mixer");
    latent = anyIs(".kv_b_proj");
    // Whole modules first: what they have is theirs.
    if (asks(plan::RecomputeModule::Experts) && mixture)
      mark(false, [&](size_t i) { return is(i, block()); });
    if (asks(plan::RecomputeModule::Mlp) && !mixture && isMlp())
      mark(false, [&](size_t i) { return is(i, block()); });
    if (asks(plan::RecomputeModule::SharedExperts))
      mark(false, [&](size_t i) { return is(i, ".shared_expert"); });
    if (asks(plan::RecomputeModule::CoreAttention)) {
      const std::vector<bool> core = coreOfAttention(graph);
      mark(false, [&](size_t i) { return core[i]; });
    }
    if (asks(plan::RecomputeModule::Norms)) {
      if (latent)
        mark(true, [&](size_t i) { return is(i, ".input_layernorm"); });
      if (mixture)
        mark(true, [&](size_t i) {
          return hybrid ? !is(i, ".mixer") &&
                              function.instructions[i].where.ends_with(".norm")
                        : is(i, ".post_attention_layernorm");
        });
    }
    if (asks(plan::RecomputeModule::MlaUpProjection) && latent)
      markUpProjection();
    if (asks(plan::RecomputeModule::ExpertActivation) && mixture)
      markActivation();
  }

private:
  bool asks(plan::RecomputeModule module) const { return modules.has(module); }
  bool is(size_t i, const char *part) const {
    return function.instructions[i].where.find(part) != std::string::npos;
  }
  bool anyIs(const char *part) const {
    for (size_t i = 0; i < function.instructions.size(); ++i)
      if (is(i, part))
        return true;
    return false;
  }

  /// The module of the layer's MLP or mixture.
  const char *block() const { return hybrid ? ".mixer" : ".mlp"; }
  /// A layer of a hybrid model has one block.
  bool isMlp() const { return !hybrid || anyIs(".mixer.up_proj"); }

  /// One checkpoint of all that is nobody's yet.
  template <typename Predicate> void mark(bool discards, Predicate inside) {
    const int number = static_cast<int>(graph.discards.size());
    graph.discards.push_back(discards);
    for (size_t i = 0; i < graph.child.size(); ++i)
      if (graph.child[i] < 0 && inside(i))
        graph.child[i] = number;
  }

  int base(int slot) const { return function.slots[slot].base; }

  /// From the latent forms to what attention reads: their norms, the
  /// projections and all that attention's module computes itself before its
  /// core. Derivatives are of the same modules, and after the core's.
  void markUpProjection() {
    const std::vector<bool> core = coreOfAttention(graph);
    std::vector<bool> up(core.size(), false);
    for (const bool half : {true, false}) {
      bool begun = !half, passed = false; // the latent forms, the core
      for (size_t i = 0; i < core.size(); ++i) {
        if (graph.forward[i] != half)
          continue;
        passed = passed || core[i];
        begun = begun || is(i, ".kv_a_proj") || is(i, ".q_a_layernorm");
        const bool own =
            endsInAttention(i) && !core[i] && begun && passed != half;
        up[i] = own || is(i, ".q_a_layernorm") || is(i, ".q_b_proj") ||
                is(i, ".kv_a_layernorm") || is(i, ".kv_b_proj");
      }
    }
    mark(true, [&](size_t i) { return up[i]; });
  }
  bool endsInAttention(size_t i) const {
    return function.instructions[i].where.ends_with(".self_attn");
  }

  /// The activation, and the cast of what it gives: with operands in 8 bits the
  /// product behind it saves its input in 16 (set_save_original_input).
  void markActivation() {
    std::set<int> made;
    mark(true, [&](size_t i) {
      const Instruction &instruction = function.instructions[i];
      bool own = instruction.op.starts_with("megatron::weighted_");
      if (instruction.op == "te::quantize")
        forEachSlot(instruction,
                    [&](int slot) { own |= made.count(base(slot)) > 0; });
      if (own && graph.forward[i])
        for (int slot : instruction.results)
          made.insert(base(slot));
      return own;
    });
  }

  SegmentGraph &graph;
  const plan::Function &function;
  const plan::RecomputeModules modules;
  bool mixture = false, latent = false, hybrid = false;
};

} // namespace

void markRecomputed(SegmentGraph &graph,
                    const plan::RecomputeModules &modules) {
  Marker(graph, modules).run();
}

} // namespace accel
