//===- MegatronLayers.cpp - Transformer Engine's linear layers ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/StepModel/MegatronLayers.h"

#include "passes/Cost/ExchangeCost.h"
#include "passes/Cost/OpCost.h"
#include "passes/StepModel/StorageUses.h"
#include "passes/StepModel/TensorExchanges.h"
#include "runtime/plan/Exchanges.h"
#include "runtime/plan/Operands.h"

#include <algorithm>
#include <map>
#include <set>

namespace accel {
namespace {

using plan::Arg;
using plan::DType;
using plan::ExchangeKind;
using plan::Instruction;

class Layers {
public:
  Layers(SegmentGraph &graph, const MegatronLayers &layers,
         const Target *target)
      : graph(graph), function(graph.function), layers(layers), target(target) {
  }

  void run() {
    graph.waits.resize(function.instructions.size(), -1);
    if (layers.operands != LinearOperands::Computed)
      narrowOperands();
    if (!target)
      return;
    findUses();
    waitForFourBits();
    overlapTensor(graph,
                  layers.overlapsTensor ? TensorOverlap::UserBuffers
                                        : TensorOverlap::WeightGradients,
                  *target);
    overlapContext();
  }

private:
  int base(int slot) const { return function.slots[slot].base; }

  void findUses() { uses = StorageUses(graph); }

  std::optional<plan::Exchange> exchangeAt(int i, std::string_view axis) const {
    const Instruction &instruction = function.instructions[i];
    if (!plan::isExchange(instruction))
      return std::nullopt;
    auto exchange = plan::exchangeOf(instruction);
    if (!exchange || exchange->axes.size() != 1 ||
        exchange->axes.front() != axis)
      return std::nullopt;
    return exchange;
  }
  bool gathers(int i) const {
    const auto exchange = exchangeAt(i, "tp");
    return exchange && exchange->kind == ExchangeKind::AllGather;
  }

  //===--- Operands in 8 or 4 bits ----------------------------------------===//

  /// Matmuls of linear layers; the router's stays in 16 bits.
  bool isLinear(int i) const {
    const std::string &where = function.instructions[i].where;
    return isMatmul(graph, i) && !where.ends_with(".gate");
  }

  void narrowOperands() {
    findUses();
    std::set<int> inputs, gradients; // storages
    std::vector<int> weightGradients;
    for (int i = 0; i < static_cast<int>(function.instructions.size()); ++i) {
      if (!isLinear(i))
        continue;
      if (graph.forward[i] || uses.readsParameter(graph, i)) {
        // A product with the weight: of the input, or of a gradient.
        for (const Arg &arg : function.instructions[i].args)
          if (arg.kind == Arg::Kind::Tensor &&
              !uses.parameter[base(arg.slot)] && isWide(arg.slot))
            (graph.forward[i] ? inputs : gradients).insert(base(arg.slot));
      } else {
        weightGradients.push_back(i);
      }
    }
    for (int root : inputs)
      if (uses.readers[root].size() > 0)
        quantiseInput(root, weightGradients);
    for (int root : gradients)
      addCast(root, /*isForward=*/false);
    // From the last to the first, so that positions stay true.
    std::sort(casts.begin(), casts.end(),
              [](const auto &a, const auto &b) { return a.first > b.first; });
    for (auto &[at, instruction] : casts)
      graph.insert(static_cast<size_t>(at), instruction, graph.forward[at],
                   /*isView=*/false);
  }
  bool isWide(int slot) const {
    return function.slots[slot].dtype == DType::BF16 ||
           function.slots[slot].dtype == DType::F16;
  }

  /// `root` is what a product of the forward reads: the input itself, or what
  /// ranks of tp gathered of it.
  void quantiseInput(int root, const std::vector<int> &weightGradients) {
    std::set<int> tensors = {root};
    int source = root;
    if (uses.maker[root] >= 0 && gathers(uses.maker[root])) {
      const auto exchange = exchangeAt(uses.maker[root], "tp");
      source = base(exchange->value);
      tensors.insert(source);
    }
    // What the backward gathers of it again.
    for (int i : uses.readers[source])
      if (!graph.forward[i] && gathers(i))
        tensors.insert(base(function.instructions[i].results.front()));
    bool others = uses.maker[source] < 0; // an input of the function
    for (int tensor : tensors)
      for (int i : uses.readers[tensor]) {
        const bool product =
            isLinear(i) &&
            (graph.forward[i] ||
             std::find(weightGradients.begin(), weightGradients.end(), i) !=
                 weightGradients.end());
        others |= !product && !gathers(i);
      }
    const bool four = layers.operands == LinearOperands::Nvfp4;
    if (!others && !four) {
      for (plan::Slot &slot : function.slots)
        if (tensors.count(slot.base))
          slot.dtype = DType::U8;
      // LayerNormLinear writes 8 bits at once; Mamba's norm is mamba_ssm's.
      const std::string &made = function.instructions[uses.maker[source]].op;
      const bool norm = made.find("norm") != std::string::npos &&
                        made != "megatron::group_norm";
      if (!norm)
        addCast(source, /*isForward=*/true);
      return;
    }
    const bool saved =
        std::any_of(weightGradients.begin(), weightGradients.end(), [&](int i) {
          bool reads = false;
          forEachSlot(function.instructions[i], [&](int slot) {
            reads |= tensors.count(base(slot)) > 0;
          });
          return reads;
        });
    const bool gathered = tensors.size() > 1;
    const int copy =
        addCast(source, /*isForward=*/true, saved || (four && gathered));
    if (copy < 0)
      return;
    // The weight's gradient reads the copy; who gathers again gathers it. A
    // norm does not write 4 bits: the products of the forward read the copy too
    // where nobody else needs the tensor.
    for (size_t i = 0; i < function.instructions.size(); ++i) {
      const bool inForward = graph.forward[i];
      if (graph.view[i] || (inForward && (others || !four)))
        continue;
      const bool product =
          inForward ? isLinear(static_cast<int>(i))
                    : std::find(weightGradients.begin(), weightGradients.end(),
                                static_cast<int>(i)) != weightGradients.end();
      if (!product && !gathers(static_cast<int>(i)))
        continue;
      for (Arg &arg : function.instructions[i].args)
        if (arg.kind == Arg::Kind::Tensor && base(arg.slot) == source)
          arg.slot = viewOf(copy, arg.slot);
    }
    if (!others)
      narrowGathered(tensors, source);
  }

  /// What ranks of tp gather of the copy of `source`.
  void narrowGathered(const std::set<int> &tensors, int source) {
    for (int tensor : tensors)
      if (tensor != source)
        graph.fourBits.insert(tensor);
    for (plan::Slot &slot : function.slots)
      if (slot.base != source && tensors.count(slot.base))
        slot.dtype = DType::U8;
  }

  /// Exchanges are costed by the sizes of slots, which have whole bytes.
  void waitForFourBits() {
    for (int i = 0; i < static_cast<int>(function.instructions.size()); ++i) {
      const auto exchange = exchangeAt(i, "tp");
      if (!exchange || !graph.fourBits.count(base(exchange->result)))
        continue;
      plan::Function narrow;
      narrow.slots = function.slots;
      for (int slot : {exchange->value, exchange->result}) {
        int64_t &size = narrow.slots[slot].shape.back();
        size = (size * 9 + 15) / 16;
      }
      graph.waits[i] = exchangeSeconds(narrow, function.instructions[i],
                                       graph.mesh, graph.ranksPerNode, *target);
    }
  }

  /// `copy` in the form of `slot`.
  int viewOf(int copy, int slot) {
    plan::Slot view = function.slots[slot];
    view.base = copy;
    view.dtype = DType::U8;
    function.slots.push_back(view);
    return static_cast<int>(function.slots.size()) - 1;
  }

  /// Bytes that a cast of one element moves. One kernel reads 16 bits and
  /// writes 8 in both orders. To 4 bits the largest values are found first, and
  /// each order is written by a kernel of its own: the second with the Hadamard
  /// transform (transformer_engine/pytorch/csrc/quantizer.cpp,
  /// NVFP4Quantizer::quantize_impl).
  double castBytes() const {
    return layers.operands == LinearOperands::Nvfp4
               ? 3 * 2 + 2 * bytesOfOperand(layers.operands)
               : 4;
  }

  /// The cast before the first matmul or gather that reads `root`; `keeps`: one
  /// of its results is kept. Returns its slot.
  int addCast(int root, bool isForward, bool keeps = false) {
    int at = -1;
    for (int i : uses.readers[root])
      if (graph.forward[i] == isForward && (isLinear(i) || gathers(i))) {
        at = i;
        break;
      }
    if (at < 0)
      return -1;
    Instruction cast;
    cast.op = "te::quantize";
    cast.where = function.instructions[at].where;
    cast.args = {plan::tensorArg(root)};
    const bool epilogue =
        layers.fusedExperts && uses.maker[root] >= 0 &&
        function.instructions[uses.maker[root]].op.starts_with(
            "megatron::weighted_");
    cast.movedBytes =
        epilogue ? 0
                 : plan::elementsOf(function.slots[root].shape) * castBytes();
    int copy = -1;
    if (keeps) {
      copy = static_cast<int>(function.slots.size());
      function.slots.push_back({DType::U8, function.slots[root].shape, copy});
      cast.results = {copy};
      if (layers.operands == LinearOperands::Nvfp4)
        graph.fourBits.insert(copy);
    }
    casts.push_back({at, std::move(cast)});
    return copy;
  }

  //===--- Exchanges beside computation -----------------------------------===//

  double secondsOf(int i) const {
    return opSeconds(function, function.instructions[i], *target);
  }
  double waitOf(int i) const {
    return graph.waits[i] >= 0
               ? graph.waits[i]
               : exchangeSeconds(function, function.instructions[i], graph.mesh,
                                 graph.ranksPerNode, *target);
  }

  /// Each step's keys come while the step before it computes.
  void overlapContext() {
    for (const bool half : {true, false}) {
      double sent = 0, computed = 0;
      std::vector<int> permutes;
      for (int i = 0; i < static_cast<int>(function.instructions.size()); ++i) {
        if (graph.forward[i] != half)
          continue;
        if (const auto exchange = exchangeAt(i, "cp");
            exchange && exchange->kind == ExchangeKind::Permute) {
          permutes.push_back(i);
          sent += waitOf(i);
        } else if (!graph.view[i] &&
                   opKind(function.instructions[i]) == OpKind::Attention) {
          computed += secondsOf(i);
        }
      }
      if (sent <= 0)
        continue;
      const double hidden = std::min(sent, computed) * target->overlap;
      for (int i : permutes)
        graph.waits[i] = waitOf(i) * (1 - hidden / sent);
    }
  }

  SegmentGraph &graph;
  plan::Function &function;
  const MegatronLayers layers;
  const Target *target;
  StorageUses uses;
  std::vector<std::pair<int, Instruction>> casts;
};

} // namespace

void useMegatronLayers(SegmentGraph &graph, const MegatronLayers &layers,
                       const Target *target) {
  Layers(graph, layers, target).run();
}

} // namespace accel
