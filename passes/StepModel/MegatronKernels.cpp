//===- MegatronKernels.cpp - What Megatron launches of a mixture ----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/StepModel/MegatronKernels.h"

#include "passes/StepModel/SegmentOrder.h"

#include <array>
#include <set>

namespace accel {
namespace {

using plan::Instruction;

/// Kernels of an instruction where ranks exchange rows by NCCL's all-to-all
/// (MoEAlltoAllTokenDispatcher), and by DeepEP or HybridEP
/// (MoEFlexTokenDispatcher), both of
/// megatron/core/transformer/moe/token_dispatcher.py.
struct Kernels {
  const char *op;
  double allToAll, flex;
};

/// Routing is fused (moe_router_fusion): a kernel for the choice, one for the
/// scores of the balance loss, one for its sum; backward the same. Row counts:
/// a sum over tokens, its reshape and sum by rank, the gather of all ranks'
/// counts, three sums of that, three copies to the host. Permutation is fused
/// (moe_permute_fusion, transformer_engine/pytorch/triton/permutation.py):
/// three passes that make the row map, and one over the rows.
constexpr std::array<Kernels, 12> kernelsOfMixture = {{
    {"megatron::route", 3, 3},
    {"megatron::route_backward", 3, 3},
    {"megatron::count", 10, 2},
    {"megatron::permute", 4, 0},
    {"megatron::permute_probabilities", 1, 0},
    {"megatron::permute_backward", 2, 0},
    // Rows, and their probabilities.
    {"megatron::all_to_all", 2, 2},
    // A row map and the rows, of rows and of probabilities.
    {"megatron::sort_chunks", 3, 1},
    {"megatron::gather_rows", 2, 2},
    {"megatron::scatter_rows", 1, 1},
    {"megatron::unpermute", 1, 0},
    {"megatron::unpermute_backward", 2, 0},
}};

class Counter {
public:
  Counter(SegmentGraph &graph, const ExpertRanks &experts,
          const MegatronHost &host)
      : graph(graph), list(graph.function.instructions), experts(experts),
        host(host) {}

  void run() {
    const bool mixture = findExperts();
    for (size_t i = 0; i < list.size(); ++i) {
      hybrid = hybrid || is(i, ".mixer");
      states = states || list[i].op.find("mamba2_mixer") != std::string::npos;
    }
    if (!mixture && host.graphs.empty())
      return;
    graph.host.assign(list.size(), HostWork());
    if (mixture)
      for (size_t i = 0; i < list.size(); ++i)
        graph.host[i] = of(i);
    if (mixture && !experts.overlapped)
      markWait();
    replay();
  }

private:
  /// Experts of the rank, by the weights of the grouped products.
  bool findExperts() {
    for (size_t i = 0; i < graph.function.params.size(); ++i) {
      const plan::Slot &slot = graph.function.slots[graph.function.params[i]];
      weights.insert(slot.base);
      if (graph.function.paramNames[i].ends_with("experts.down_proj"))
        local = static_cast<double>(slot.shape.front());
    }
    for (const Instruction &instruction : list)
      if (instruction.op == "aten::_grouped_mm")
        forEachSlot(instruction, [&](int slot) {
          groupedInputs.insert(graph.function.slots[slot].base);
        });
    return local > 0 && !groupedInputs.empty();
  }

  HostWork of(size_t i) const {
    const Instruction &instruction = list[i];
    const std::string &op = instruction.op;
    for (const Kernels &k : kernelsOfMixture)
      if (op == k.op)
        return {experts.sendsOnce ? k.flex : k.allToAll};
    if (op == "aten::_grouped_mm")
      return {products(i)};
    if (op == "te::quantize")
      return {casts(instruction)};
    // For each expert a product and a sum, then one tensor and its cast; their
    // derivatives: two products, two sums and two casts.
    if (op == "megatron::expert_bias")
      return {2 * local + 2};
    if (op == "megatron::expert_bias_backward")
      return {(6 + 1) * local + 2};
    return {};
  }

  /// A product for each expert (te_general_grouped_gemm); with a scale for each
  /// 32 elements those of both operands are put in order before. Beside them,
  /// for each expert: in the forward with operands in 8 bits the weight's copy
  /// is looked up (get_weight_workspace), and each weight's gradient is one
  /// node of autograd with a hook of the buckets
  /// (transformer_engine/pytorch/module/grouped_linear.py,
  /// megatron/core/distributed/distributed_data_parallel.py).
  double products(size_t i) const {
    bool readsWeight = false;
    forEachSlot(list[i], [&](int slot) {
      readsWeight |= weights.count(graph.function.slots[slot].base) > 0;
    });
    const bool beside = graph.forward[i]
                            ? host.operands != LinearOperands::Computed
                            : !readsWeight;
    return (beside ? 2 : 1) * local + (scalesByBlock() ? 2 : 0);
  }

  /// One kernel with a scale for each 32 elements; else the largest value, the
  /// scale of it, and the cast; of 4 bits the largest values, and a cast for
  /// each order. For each expert where experts read it.
  double casts(const Instruction &instruction) const {
    bool grouped = false;
    forEachSlot(instruction, [&](int slot) {
      grouped |= groupedInputs.count(graph.function.slots[slot].base) > 0;
    });
    return (host.operands == LinearOperands::Mxfp8 ? 1 : 3) *
           (grouped ? local : 1);
  }
  bool scalesByBlock() const {
    return host.operands == LinearOperands::Mxfp8 ||
           host.operands == LinearOperands::Nvfp4;
  }

  /// The host reads how many rows each expert has: before the all-to-all, whose
  /// sizes they are; of the flexible dispatchers' where the products need them
  /// (tokens_per_expert.tolist()). With full iteration graphs it never does, as
  /// rows are padded to a bound.
  void markWait() {
    const char *last = experts.sendsOnce && experts.ranks > 1
                           ? "megatron::all_to_all"
                           : "megatron::count";
    for (size_t i = 0; i < list.size(); ++i)
      if (graph.forward[i] && list[i].op == last) {
        graph.host[i].waits = true;
        return;
      }
  }

  bool is(size_t i, const char *part) const {
    return list[i].where.find(part) != std::string::npos;
  }
  /// What a captured router has where the mixture is its layer's only block:
  /// the norm, the shared expert and the projection to the experts' width
  /// (MoELayer.preprocess of megatron/core/transformer/moe/moe_layer.py).
  plan::GraphedPart partOfMixture(size_t i) const {
    if (list[i].op == "megatron::count")
      return plan::GraphedPart::Preprocess;
    const bool routes =
        hybrid ? !is(i, ".mixer.experts") && !is(i, ".fc2_latent_proj")
               : is(i, ".mlp.gate");
    return routes ? plan::GraphedPart::Router : plan::GraphedPart::Experts;
  }
  bool isReplayed(size_t i) const {
    const plan::GraphedParts &graphs = host.graphs;
    if (graphs.has(plan::GraphedPart::Iteration))
      return true;
    if (hybrid) // one block in a layer, with its norm
      return graphs.has(states ? plan::GraphedPart::Mamba
                        : local == 0 && is(i, ".up_proj")
                            ? plan::GraphedPart::Mlp
                        : local == 0 ? plan::GraphedPart::Attention
                                     : partOfMixture(i));
    if (!is(i, ".mlp"))
      return graphs.has(plan::GraphedPart::Attention);
    if (local == 0)
      return graphs.has(plan::GraphedPart::Mlp);
    return graphs.has(partOfMixture(i));
  }
  /// What a graph has is launched once in each half.
  void replay() {
    std::array<bool, 2> launched{};
    for (size_t i = 0; i < list.size(); ++i) {
      if (!isReplayed(i))
        continue;
      HostWork &work = graph.host[i];
      work.replayed = true;
      if (host.graphs.has(plan::GraphedPart::Iteration)) {
        work.waits = false;
        continue;
      }
      bool &once = launched[graph.forward[i]];
      if (!once && !graph.view[i]) {
        work.replayed = false;
        work.launches = 1;
        once = true;
      }
    }
  }

  SegmentGraph &graph;
  const std::vector<Instruction> &list;
  const ExpertRanks experts;
  const MegatronHost host;
  double local = 0;
  bool hybrid = false, states = false;  // of blocks called "mixer"; Mamba-2
  std::set<int> weights, groupedInputs; // storages
};

} // namespace

void countMegatronKernels(SegmentGraph &graph, const ExpertRanks &experts,
                          const MegatronHost &host) {
  Counter(graph, experts, host).run();
}

} // namespace accel
