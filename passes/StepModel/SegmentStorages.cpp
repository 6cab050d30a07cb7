//===- SegmentStorages.cpp - The storages of a segment --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/StepModel/SegmentStorages.h"

#include "passes/StepModel/SegmentOrder.h"

#include <algorithm>

namespace accel {

using plan::Instruction;

namespace {

class Finder {
public:
  explicit Finder(const SegmentGraph &graph)
      : graph(graph), function(graph.function),
        storages(function.slots.size()) {}

  std::vector<Storage> run() {
    findStorages();
    return std::move(storages);
  }

private:
  int base(int slot) const { return function.slots[slot].base; }

  int64_t bytesOf(int slot) const {
    int64_t numel = 1;
    for (int64_t size : function.slots[slot].shape)
      numel *= size;
    const int64_t bytes =
        graph.fourBits.count(slot)
            ? (numel + 1) / 2 + (numel + 15) / 16
            : numel * plan::itemSize(function.slots[slot].dtype);
    return (bytes + graph.rounding - 1) / graph.rounding * graph.rounding;
  }

  void findStorages() {
    for (size_t i = 0; i < storages.size(); ++i)
      if (base(static_cast<int>(i)) == static_cast<int>(i))
        storages[i].bytes = bytesOf(static_cast<int>(i));
    for (size_t i = 0; i < function.inputs.size(); ++i) {
      Storage &storage = storages[base(function.inputs[i])];
      const bool tangent = static_cast<int>(i) >= graph.inputs;
      storage.owner = tangent ? Owner::Tangent : Owner::Input;
      storage.index = static_cast<int>(i);
    }
    std::vector<bool> cached(storages.size(), false); // by storage
    for (size_t i = 0; i < function.params.size(); ++i) {
      const int root = base(function.params[i]);
      storages[root].owner = Owner::Parameter;
      cached[root] =
          i >= graph.frozenParameters.size() || !graph.frozenParameters[i];
    }
    for (size_t i = 0; i < function.outputs.size(); ++i) {
      Storage &storage = storages[base(function.outputs[i])];
      const int position = static_cast<int>(i);
      if (position < graph.outputs) {
        storage.output = true;
        storage.outputIndex = position;
      } else if (position < graph.outputs + graph.inputGradients) {
        storage.inputGradient = true;
      } else {
        storage.parameterGradient = true;
      }
    }
    for (size_t i = 0; i < function.instructions.size(); ++i) {
      const int position = static_cast<int>(i);
      const Instruction &instr = function.instructions[i];
      const bool forward = graph.forward[i];
      bool fromParameter = instr.op == "aten::_to_copy";
      forEachSlot(instr, [&](int slot) {
        Storage &storage = storages[base(slot)];
        (forward ? storage.lastForward : storage.lastBackward) = position;
        fromParameter &=
            storage.owner == Owner::Parameter && cached[base(slot)];
      });
      if (graph.view[i])
        continue;
      for (int slot : instr.results) {
        if (slot < 0)
          continue;
        storages[slot].producer = position;
        storages[slot].madeInForward = forward;
        storages[slot].parameterCopy = forward && fromParameter;
      }
    }
  }

  const SegmentGraph &graph;
  const plan::Function &function;
  std::vector<Storage> storages;
};

} // namespace

std::vector<Storage> storagesOf(const SegmentGraph &graph) {
  return Finder(graph).run();
}

namespace {

/// What the layers return: the operand of the head's matmul, before autocast
/// converts it. -1: no storage of the segment is that.
int hiddenStates(const SegmentGraph &graph,
                 const std::vector<Storage> &storages) {
  const plan::Function &function = graph.function;
  for (size_t i = 0; i < function.instructions.size(); ++i) {
    const Instruction &matmul = function.instructions[i];
    const bool biased = matmul.op == "aten::addmm";
    if (!graph.forward[i] || (!biased && matmul.op != "aten::mm"))
      continue;
    int root = function.slots[matmul.args[biased ? 1 : 0].slot].base;
    if (storages[root].owner != Owner::Own)
      return -1;
    const Instruction &made = function.instructions[storages[root].producer];
    if (made.op == "aten::_to_copy")
      root = function.slots[made.args[0].slot].base;
    return storages[root].owner == Owner::Own ? root : -1;
  }
  return -1;
}

/// The segment's input is given back when the layers return, as no backward
/// reads it: those bytes, which are counted until the segment's end, are what
/// the hidden states take meanwhile.
bool takePlaceOfInput(int hidden, const std::vector<Storage> &storages) {
  return std::any_of(
      storages.begin(), storages.end(), [&](const Storage &storage) {
        return storage.owner == Owner::Input && storage.lastBackward < 0 &&
               storage.bytes == storages[hidden].bytes &&
               storage.lastForward <= storages[hidden].producer;
      });
}

} // namespace

bool unpacksSaved(const SegmentGraph &graph,
                  const std::vector<Storage> &storages, int i) {
  const plan::Function &function = graph.function;
  const auto count = static_cast<int>(function.instructions.size());
  bool unpacks = false;
  for (int k = i; k < count && graph.node[k] == graph.node[i]; ++k)
    forEachSlot(function.instructions[k], [&](int slot) {
      const int root = function.slots[slot].base;
      const Owner owner = storages[root].owner;
      unpacks |= (owner == Owner::Input || owner == Owner::Parameter ||
                  storages[root].saved()) &&
                 !graph.heldByNodes.contains(root);
    });
  return unpacks;
}

FrameValues frameValues(const SegmentGraph &graph,
                        const std::vector<Storage> &storages) {
  const plan::Function &function = graph.function;
  auto base = [&](int slot) { return function.slots[slot].base; };
  FrameValues result;
  result.named.assign(storages.size(), false);
  if (!graph.loss)
    return result;
  if (graph.namesHiddenStates)
    if (const int hidden = hiddenStates(graph, storages);
        hidden >= 0 && !takePlaceOfInput(hidden, storages))
      result.named[hidden] = true;
  for (size_t i = 0; i < function.instructions.size(); ++i) {
    const Instruction &instr = function.instructions[i];
    const bool softmax = instr.op == "aten::_log_softmax";
    if (!graph.forward[i] || instr.args.empty() ||
        (!softmax && instr.op != "fused::cross_entropy"))
      continue;
    int root = base(instr.args[0].slot);
    if (softmax && graph.shiftsLogits)
      result.shifted = static_cast<int>(i);
    while (root >= 0 && storages[root].owner == Owner::Own) {
      result.named[root] = true;
      const Instruction &made = function.instructions[storages[root].producer];
      const bool copy =
          made.op == "aten::clone" ||
          (made.op == "aten::_to_copy" && graph.namesNarrowLogits);
      root = copy ? base(made.args[0].slot) : -1;
    }
  }
  return result;
}

bool isDiscarded(const SegmentGraph &graph, const Storage &storage) {
  if (!storage.madeInForward || storage.producer < 0)
    return false;
  const int child = graph.child[storage.producer];
  return child >= 0 && size_t(child) < graph.discards.size() &&
         graph.discards[child];
}

std::pair<std::vector<bool>, std::vector<bool>>
valuesOfChildren(const SegmentGraph &graph,
                 const std::vector<Storage> &storages) {
  const plan::Function &function = graph.function;
  std::vector<bool> held(storages.size(), false), own = held;
  for (size_t i = 0; i < function.instructions.size(); ++i)
    forEachSlot(function.instructions[i], [&](int slot) {
      const int root = function.slots[slot].base;
      const Storage &storage = storages[root];
      const int child = graph.child[i];
      if (storage.owner == Owner::Input)
        held[root] = held[root] || child >= 0 || !graph.forward[i];
      if (storage.owner != Owner::Own || !storage.madeInForward)
        return;
      const int from = graph.child[storage.producer];
      const bool outside = child >= 0 ? child != from : !graph.forward[i];
      if (outside && isDiscarded(graph, storage) && !storage.output)
        own[root] = true;
      else if (outside)
        held[root] = true;
      if (!graph.forward[i] && child >= 0 && child == from)
        own[root] = true;
    });
  return {held, own};
}

} // namespace accel
