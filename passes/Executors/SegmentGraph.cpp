//===- SegmentGraph.cpp - What autograd holds of a segment ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Executors/SegmentGraph.h"

#include "passes/Cost/OpCost.h"

#include <algorithm>

namespace accel {

using plan::Arg;
using plan::Instruction;

namespace {

enum class Owner { Own, Input, Tangent, Parameter };

/// A storage: one base slot and the views of it.
struct Storage {
  Owner owner = Owner::Own;
  int index = -1; // of the input
  int64_t bytes = 0;
  int producer = -1;    // instruction
  int lastForward = -1; // last use by each half
  int lastBackward = -1;
  bool output = false, inputGradient = false, parameterGradient = false;
  bool parameterCopy = false;
  int outputIndex = -1;
  /// Saved by autograd: made in the forward and read by the backward.
  bool saved() const {
    return owner == Owner::Own && lastBackward >= 0 && madeInForward;
  }
  bool madeInForward = false;
};

template <typename Use> void forEachSlot(const Instruction &instr, Use use) {
  for (const Arg &arg : instr.args) {
    if (arg.kind == Arg::Kind::Tensor || arg.kind == Arg::Kind::Wrapped)
      use(arg.slot);
    if (arg.kind == Arg::Kind::Tensors)
      for (int64_t slot : arg.ints)
        if (slot >= 0) // an index that is left out
          use(static_cast<int>(slot));
  }
}

class Measurer {
public:
  Measurer(const SegmentGraph &graph, EagerMode mode, const Target *target)
      : graph(graph), function(graph.function), mode(mode), target(target),
        storages(function.slots.size()) {
    findStorages();
  }

  SegmentVariant run() {
    variant.name = mode == EagerMode::None        ? "none"
                   : mode == EagerMode::Pointwise ? "pointwise"
                                                  : "full";
    decideKept();
    measureSaved();
    measureForward();
    Level level;
    if (mode != EagerMode::None)
      recompute(level);
    measureBackward(level);
    measureCompiled();
    return std::move(variant);
  }

private:
  struct Level {
    int64_t bytes = 0; // over the entry, without parameter gradients
    int64_t gradients = 0;
  };

  int base(int slot) const { return function.slots[slot].base; }

  int64_t bytesOf(int slot) const {
    int64_t numel = 1;
    for (int64_t size : function.slots[slot].shape)
      numel *= size;
    const int64_t bytes = numel * plan::itemSize(function.slots[slot].dtype);
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
    for (int slot : function.params)
      storages[base(slot)].owner = Owner::Parameter;
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
        fromParameter &= storage.owner == Owner::Parameter;
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

  /// By instruction of the forward: results that survive as they are.
  void decideKept() {
    kept.assign(function.instructions.size(), mode == EagerMode::None);
    if (mode == EagerMode::Pointwise)
      kept = graph.pointwiseKeeps;
    lastSaved = -1;
    for (const Storage &storage : storages)
      if (storage.saved())
        lastSaved = std::max(lastSaved, storage.producer);
  }

  /// A storage of the forward that lives on to the backward.
  bool isKept(const Storage &storage) const {
    if (storage.owner != Owner::Own || !storage.madeInForward)
      return false;
    return mode == EagerMode::None ? storage.saved() : kept[storage.producer];
  }

  void measureSaved() {
    variant.savesInput.assign(graph.inputs, mode != EagerMode::None);
    variant.savesOutput.assign(graph.outputs, false);
    for (int slot : function.params)
      variant.backwardReads.push_back(storages[base(slot)].lastBackward >= 0);
    for (const Storage &storage : storages) {
      if (storage.owner == Owner::Input && storage.lastBackward >= 0)
        variant.savesInput[storage.index] = true;
      if (storage.parameterCopy)
        variant.parameterCopyBytes += storage.bytes;
      if (!isKept(storage))
        continue;
      if (storage.output)
        variant.savesOutput[storage.outputIndex] = true;
      else
        variant.savedBytes += storage.bytes;
      variant.savesParameterCopies |= storage.parameterCopy;
    }
    for (int i = 0; i < graph.inputs; ++i)
      if (variant.savesInput[i])
        variant.savedInputBytes += storages[base(function.inputs[i])].bytes;
  }

  double seconds(int i) const {
    return target ? opSeconds(function, function.instructions[i], *target) : 0;
  }

  /// Allocates what instruction `i` makes; returns the bytes.
  int64_t allocated(int i) const {
    int64_t bytes = 0;
    if (!graph.view[i])
      for (int slot : function.instructions[i].results)
        if (slot >= 0)
          bytes += storages[slot].bytes;
    return bytes;
  }

  void measureForward() {
    int64_t level = 0;
    for (size_t i = 0; i < function.instructions.size(); ++i) {
      if (!graph.forward[i])
        continue;
      const int position = static_cast<int>(i);
      const Instruction &instr = function.instructions[i];
      level += allocated(position);
      variant.forwardPeakBytes =
          std::max(variant.forwardPeakBytes, level + instr.workspaceBytes);
      freeAfterForward(position, level, [&](const Storage &storage) {
        return isKept(storage) || storage.output || storage.parameterCopy;
      });
      variant.forwardSeconds += seconds(position);
      variant.forwardOps += !graph.view[i];
    }
  }

  /// Frees storages whose last use in the forward is instruction `i`.
  template <typename Stays>
  void freeAfterForward(int i, int64_t &level, Stays stays) {
    auto consider = [&](int slot) {
      const int root = base(slot);
      const Storage &storage = storages[root];
      if (storage.owner != Owner::Own || !storage.madeInForward ||
          std::max(storage.lastForward, storage.producer) != i ||
          stays(storage) || isFreed(root))
        return;
      markFreed(root);
      level -= storage.bytes;
    };
    forEachSlot(function.instructions[i], consider);
    if (!graph.view[i])
      for (int slot : function.instructions[i].results)
        if (slot >= 0)
          consider(slot);
  }

  bool isFreed(int root) const {
    return std::find(freed.begin(), freed.end(), root) != freed.end();
  }
  void markFreed(int root) { freed.push_back(root); }

  /// The forward again, up to the last value that autograd saves.
  void recompute(Level &level) {
    freed.clear();
    for (int i = 0; i <= lastSaved; ++i) {
      if (!graph.forward[i])
        continue;
      const Instruction &instr = function.instructions[i];
      if (!kept[i]) {
        level.bytes += allocated(i);
        notePeak(level, 0, instr.workspaceBytes);
        variant.recomputeSeconds += seconds(i);
        variant.backwardOps += !graph.view[i];
      }
      freeAfterForward(i, level.bytes, [&](const Storage &storage) {
        return storage.saved() || kept[storage.producer];
      });
    }
    // What was kept but is read by nobody goes with the cache; what was made
    // again for nobody (the last operators' operands) is dropped.
    for (const Storage &storage : storages) {
      if (storage.owner != Owner::Own || !storage.madeInForward ||
          storage.saved())
        continue;
      const int root = static_cast<int>(&storage - storages.data());
      const bool exists = kept[storage.producer]
                              ? !storage.output
                              : storage.producer <= lastSaved && !isFreed(root);
      if (exists)
        level.bytes -= storage.bytes;
    }
    variant.backwardSeconds += variant.recomputeSeconds;
  }

  /// torch.compile fuses the forward and the backward each by itself.
  void measureCompiled() {
    if (!target)
      return;
    plan::Function forward = function, backward = function;
    forward.instructions.clear();
    backward.instructions.clear();
    for (size_t i = 0; i < function.instructions.size(); ++i) {
      const bool again = mode != EagerMode::None && graph.forward[i] &&
                         !kept[i] && static_cast<int>(i) <= lastSaved;
      if (graph.forward[i])
        forward.instructions.push_back(function.instructions[i]);
      if (!graph.forward[i] || again)
        backward.instructions.push_back(function.instructions[i]);
    }
    variant.compiledForwardSeconds = fusedCost(forward, *target).seconds;
    variant.compiledBackwardSeconds = fusedCost(backward, *target).seconds;
  }

  void notePeak(const Level &level, int64_t added, int64_t workspace) {
    const int64_t bytes = level.bytes + workspace;
    variant.backwardPeakBytes = std::max(variant.backwardPeakBytes, bytes);
    variant.backwardPeakFreshBytes =
        std::max(variant.backwardPeakFreshBytes, bytes + level.gradients);
    variant.backwardPeakAddedBytes =
        std::max(variant.backwardPeakAddedBytes, bytes + added);
  }

  void measureBackward(Level &level) {
    // Storages that a sum in place made one.
    std::vector<int> alias(storages.size());
    for (size_t i = 0; i < alias.size(); ++i)
      alias[i] = static_cast<int>(i);
    std::vector<int> pending; // freed when the node is done
    int64_t added = 0;
    const std::vector<int> order = backwardOrder();
    rank.assign(function.instructions.size(), -1);
    for (size_t k = 0; k < order.size(); ++k)
      rank[order[k]] = static_cast<int>(k);
    findLastBackwardUses();
    for (size_t k = 0; k < order.size(); ++k) {
      const int i = order[k];
      const Instruction &instr = function.instructions[i];
      if (const int sum = summedInPlace(i, alias); sum >= 0) {
        Storage &into = storages[sum];
        const Storage &result = storages[instr.results[0]];
        alias[instr.results[0]] = sum;
        into.lastBackward = result.lastBackward;
        into.inputGradient |= result.inputGradient;
        into.parameterGradient |= result.parameterGradient;
      } else if (!graph.view[i]) {
        for (int slot : instr.results) {
          if (slot < 0)
            continue;
          if (storages[slot].parameterGradient) {
            level.gradients += storages[slot].bytes;
            added += storages[slot].bytes;
          } else {
            level.bytes += storages[slot].bytes;
          }
        }
      }
      if (beforeLogitsGradient(static_cast<int>(k), order))
        noteLossPeak(level, instr.workspaceBytes);
      else
        notePeak(level, added, instr.workspaceBytes);
      variant.backwardSeconds += seconds(i);
      variant.backwardOps += !graph.view[i];
      collectFrees(i, alias, pending, level);
      if (k + 1 < order.size() && graph.node[order[k + 1]] == graph.node[i])
        continue;
      for (int root : pending)
        level.bytes -= storages[root].bytes;
      pending.clear();
      added = 0;
    }
  }

  /// Instructions of the backward as autograd's engine runs them: gradients
  /// that meet are summed when the second one arrives, not when the sum is
  /// needed.
  std::vector<int> backwardOrder() const {
    std::vector<int> made(function.slots.size(), -1); // slot: instruction
    std::vector<int> plain;
    std::vector<std::pair<int, int>> sums; // after which, the sum
    std::vector<int> arrives(function.instructions.size(), -1);
    const int count = static_cast<int>(function.instructions.size());
    for (int i = 0; i < count; ++i) {
      if (graph.forward[i])
        continue;
      const Instruction &instr = function.instructions[i];
      int latest = -1;
      forEachSlot(instr, [&](int slot) {
        const int from = made[slot];
        if (from >= 0)
          latest = std::max(latest, arrives[from] >= 0 ? arrives[from] : from);
      });
      for (int slot : instr.results)
        if (slot >= 0)
          made[slot] = i;
      if (isSum(i) && latest >= 0) {
        arrives[i] = latest;
        sums.emplace_back(latest, i);
      } else {
        plain.push_back(i);
      }
    }
    std::stable_sort(
        sums.begin(), sums.end(),
        [](const auto &a, const auto &b) { return a.first < b.first; });
    std::vector<int> order;
    size_t next = 0;
    for (size_t k = 0; k < plain.size(); ++k) {
      order.push_back(plain[k]);
      if (k + 1 < plain.size() &&
          graph.node[plain[k + 1]] == graph.node[plain[k]])
        continue;
      for (; next < sums.size() && sums[next].first <= plain[k]; ++next)
        order.push_back(sums[next].second);
    }
    for (; next < sums.size(); ++next)
      order.push_back(sums[next].second);
    return order;
  }

  bool isSum(int i) const {
    const Instruction &instr = function.instructions[i];
    if (instr.op != "aten::add.Tensor" || instr.results.size() != 1 ||
        instr.results[0] < 0 || instr.args.size() < 2 ||
        instr.args[0].kind != Arg::Kind::Tensor ||
        instr.args[1].kind != Arg::Kind::Tensor)
      return false;
    for (int k : {0, 1})
      if (!isGradient(storages[base(instr.args[k].slot)]))
        return false;
    return true;
  }
  static bool isGradient(const Storage &storage) {
    return storage.owner == Owner::Tangent ||
           (storage.owner == Owner::Own && !storage.madeInForward);
  }

  /// Last uses by position in the order in which the engine runs.
  void findLastBackwardUses() {
    for (Storage &storage : storages)
      storage.lastBackward = -1;
    for (size_t i = 0; i < function.instructions.size(); ++i)
      if (!graph.forward[i])
        forEachSlot(function.instructions[i], [&](int slot) {
          int &last = storages[base(slot)].lastBackward;
          last = std::max(last, rank[i]);
        });
  }

  /// The loss's own part: what runs before the head's parameters are read.
  bool beforeLogitsGradient(int k, const std::vector<int> &order) {
    if (!graph.loss)
      return false;
    if (lossEnd < 0) {
      lossEnd = static_cast<int>(order.size());
      for (size_t j = 0; j < order.size(); ++j) {
        bool head = false;
        forEachSlot(function.instructions[order[j]], [&](int slot) {
          head |= storages[base(slot)].owner == Owner::Parameter;
        });
        for (int slot : function.instructions[order[j]].results)
          head |= slot >= 0 && storages[base(slot)].parameterGradient;
        if (!head)
          continue;
        lossEnd = static_cast<int>(j);
        while (lossEnd > 0 &&
               graph.node[order[lossEnd - 1]] == graph.node[order[lossEnd]])
          --lossEnd;
        break;
      }
    }
    return k < lossEnd;
  }
  void noteLossPeak(const Level &level, int64_t workspace) {
    variant.lossPeakBytes =
        std::max(variant.lossPeakBytes, level.bytes + workspace);
  }

  /// The storage that instruction `i` adds to in place, or -1: as autograd's
  /// engine does when gradients of one value meet and nobody else holds the
  /// first.
  int summedInPlace(int i, const std::vector<int> &alias) const {
    if (!isSum(i))
      return -1;
    const Instruction &instr = function.instructions[i];
    const int root = alias[base(instr.args[0].slot)];
    const Storage &storage = storages[root];
    const bool dies = storage.lastBackward == rank[i] &&
                      !storage.inputGradient && !storage.parameterGradient;
    return dies && storage.bytes == storages[instr.results[0]].bytes ? root
                                                                     : -1;
  }

  void collectFrees(int i, const std::vector<int> &alias,
                    std::vector<int> &pending, Level &level) {
    const Instruction &instr = function.instructions[i];
    auto consider = [&](int slot) {
      const int root = alias[base(slot)];
      Storage &storage = storages[root];
      if (storage.owner == Owner::Parameter || heldByCaller(storage) ||
          storage.inputGradient || storage.parameterGradient ||
          storage.lastBackward > rank[i] || storage.output || done(root))
        return;
      finished.push_back(root);
      const bool inside = storage.owner == Owner::Own &&
                          !storage.madeInForward &&
                          graph.node[storage.producer] == graph.node[i];
      if (inside)
        level.bytes -= storage.bytes;
      else
        pending.push_back(root);
    };
    forEachSlot(instr, consider);
    if (!graph.view[i])
      for (int slot : instr.results)
        if (slot >= 0)
          consider(slot);
  }
  /// Inputs that other segments read too; and a checkpoint holds its inputs
  /// until all of it is done.
  bool heldByCaller(const Storage &storage) const {
    return storage.owner == Owner::Input &&
           (!graph.inputHasGradient[storage.index] || mode != EagerMode::None);
  }
  bool done(int root) const {
    return std::find(finished.begin(), finished.end(), root) != finished.end();
  }

  const SegmentGraph &graph;
  const plan::Function &function;
  EagerMode mode;
  const Target *target;
  std::vector<Storage> storages; // by base slot
  std::vector<bool> kept;        // by instruction
  std::vector<int> freed, finished;
  std::vector<int> rank; // by instruction of the backward: when it runs
  int lastSaved = -1, lossEnd = -1;
  SegmentVariant variant;
};

} // namespace

SegmentVariant measureVariant(const SegmentGraph &graph, EagerMode mode,
                              const Target *target) {
  return Measurer(graph, mode, target).run();
}

} // namespace accel
