//===- SegmentGraph.cpp - What autograd holds of a segment ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/StepModel/CallNames.h"
#include "passes/StepModel/FusedSeconds.h"
#include "passes/StepModel/HostQueue.h"
#include "passes/StepModel/InsideEvents.h"
#include "passes/StepModel/SegmentOrder.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace accel {

using plan::Arg;
using plan::Instruction;

namespace {

class AutogradMemory {
public:
  AutogradMemory(const SegmentGraph &graph, EagerMode mode,
                 const Target *target)
      : graph(graph), function(graph.function), mode(mode), target(target),
        storages(storagesOf(graph)), gradients(gradientSlots(graph)),
        returned(extendToReturns(graph, storages)),
        freed(storages.size(), false), finished(storages.size(), false) {}

  SegmentVariant run() {
    variant.name = mode == EagerMode::None        ? "none"
                   : mode == EagerMode::Pointwise ? "pointwise"
                                                  : "full";
    decideKept();
    measureSaved();
    measureForward();
    noteOutputs();
    Level level;
    events = &variant.trace.backward;
    isWhole = mode == EagerMode::None || mode == EagerMode::Children;
    if (mode == EagerMode::Pointwise || graph.reentrantCheckpoints)
      recomputeAll(level);
    measureBackward(level);
    variant.forwardQueued = forwardQueue.seconds(target);
    variant.backwardQueued = backwardQueue.seconds(target);
    if (target && graph.fuses)
      addFusedSeconds(graph, mode, kept, lastSaved, *target, variant);
    return std::move(variant);
  }

private:
  static constexpr int allOfIt = -2; // no child's number

  struct Level {
    int64_t bytes = 0; // over the entry, without parameter gradients
    int64_t gradients = 0;
  };

  int base(int slot) const { return function.slots[slot].base; }
  /// The whole segment is a reentrant checkpoint: its backward is a function
  /// of Python, which repeats all of the forward and has what that returns, and
  /// the gradients that it is given, until it returns itself
  /// (torch/utils/checkpoint.py, CheckpointFunction.backward).
  bool isReentrant() const {
    return mode == EagerMode::Full && graph.reentrantCheckpoints;
  }
  /// That function has it until it returns.
  bool inFrame(const Storage &storage) const {
    return isReentrant() && (storage.owner == Owner::Tangent ||
                             (storage.owner == Owner::Own && storage.output));
  }

  void emit(StorageEvent::Kind kind, int storage, int64_t bytes = 0) {
    const auto count = static_cast<int>(storages.size());
    if (namesSecond && storage < count &&
        (graph.holds(storage) || inFrame(storages[storage])) &&
        (kind == StorageEvent::Kind::Allocate ||
         kind == StorageEvent::Kind::Free))
      storage += count + 2;
    events->push_back({kind, storage, bytes});
  }
  /// What the operator needs while it runs; the most of it is returned.
  int64_t emitInside(const Instruction &instr) {
    // Numbers of nobody, behind two of copyShifted and those of namesSecond.
    return emitInsideOf(graph, instr, 2 * static_cast<int>(storages.size()) + 2,
                        *events);
  }
  void emitAllocations(int i) {
    if (graph.view[i])
      return;
    for (int slot : function.instructions[i].results)
      if (slot >= 0)
        emit(StorageEvent::Kind::Allocate, slot, storages[slot].bytes);
  }

  void noteOutputs() {
    for (int i = 0; i < graph.outputs; ++i) {
      const int root = base(function.outputs[i]);
      variant.trace.outputs.push_back(storages[root].owner == Owner::Own ? root
                                                                         : -1);
    }
    for (size_t root = 0; root < storages.size(); ++root)
      if (storages[root].parameterCopy)
        variant.trace.parameterCopies.push_back(static_cast<int>(root));
  }

  /// By instruction of the forward: results that survive as they are.
  void decideKept() {
    kept.assign(function.instructions.size(), mode == EagerMode::None);
    if (mode == EagerMode::Pointwise)
      kept = graph.pointwiseKeeps;
    if (mode == EagerMode::Children)
      std::tie(held, childHas) = valuesOfChildren(graph, storages);
    lastSaved = -1;
    for (int root = 0; root < static_cast<int>(storages.size()); ++root)
      if (storages[root].saved() || staysInNode(root))
        lastSaved = std::max(lastSaved, storages[root].producer);
  }

  /// A storage of the forward that lives on to the backward.
  bool isKept(const Storage &storage) const {
    if (storage.owner != Owner::Own || !storage.madeInForward)
      return false;
    if (mode == EagerMode::Children)
      return held[&storage - storages.data()];
    const auto root = static_cast<int>(&storage - storages.data());
    if (mode == EagerMode::Full && graph.holds(root))
      return true;
    return mode == EagerMode::None ? storage.saved() || staysInNode(root)
                                   : kept[storage.producer];
  }
  /// A node has it in an attribute (heldByNodes), which goes with the graph;
  /// nodes of a forward that a checkpoint repeats go when that ends.
  bool staysInNode(int root) const {
    return (mode == EagerMode::None || isReentrant()) &&
           graph.heldByNodes.contains(root) && storages[root].madeInForward &&
           !storages[root].output;
  }

  bool isDiscarded(const Storage &storage) const {
    return mode == EagerMode::Children && accel::isDiscarded(graph, storage);
  }

  bool isHeld(int root) const {
    return mode == EagerMode::Children && held[root];
  }

  void measureSaved() {
    variant.savesInput.assign(graph.inputs, mode == EagerMode::Pointwise ||
                                                mode == EagerMode::Full);
    variant.savesOutput.assign(graph.outputs, false);
    for (int slot : function.params)
      variant.backwardReads.push_back(storages[base(slot)].lastBackward >= 0);
    for (const Storage &storage : storages) {
      if (storage.owner == Owner::Input &&
          (mode == EagerMode::Children ? held[&storage - storages.data()]
                                       : storage.lastBackward >= 0))
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

  double seconds(int i, double &exchanged, bool again = false) const {
    return target ? eagerSeconds(graph, mode, i, again, *target, exchanged) : 0;
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
    const FrameValues frames = frameValues(graph, storages);
    named = frames.named;
    for (size_t i = 0; i < function.instructions.size(); ++i) {
      if (!graph.forward[i])
        continue;
      const int position = static_cast<int>(i);
      const Instruction &instr = function.instructions[i];
      if (position == frames.shifted)
        level += copyShifted(instr);
      level += allocated(position);
      emitAllocations(position);
      variant.forwardPeakBytes =
          std::max(variant.forwardPeakBytes, level + emitInside(instr));
      freeAfterForward(position, level, [&](const Storage &storage) {
        return isKept(storage) || storage.output || storage.parameterCopy ||
               named[&storage - storages.data()];
      });
      const double own = seconds(position, variant.forwardExchangeSeconds);
      variant.forwardSeconds += own;
      forwardQueue.add(graph, position, own, target, variant.forwardOps,
                       variant.forwardViews);
    }
    freeNamed();
  }

  /// The shifted copy of the logits, until the loss function returns.
  int64_t copyShifted(const Instruction &instr) {
    const int64_t bytes = storages[base(instr.args[0].slot)].bytes;
    shiftedStorage = static_cast<int>(storages.size()) + 1; // nobody's number
    emit(StorageEvent::Kind::Allocate, shiftedStorage, bytes);
    return bytes;
  }
  /// The frames are gone: what autograd did not save goes with them.
  void freeNamed() {
    if (shiftedStorage >= 0)
      emit(StorageEvent::Kind::Free, shiftedStorage);
    for (size_t root = 0; root < named.size(); ++root) {
      const Storage &storage = storages[root];
      if (!named[root] || isKept(storage) || storage.output ||
          storage.parameterCopy || freed[root])
        continue;
      freed[root] = true;
      emit(StorageEvent::Kind::Free, static_cast<int>(root));
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
          stays(storage) || freed[root])
        return;
      freed[root] = true;
      emit(StorageEvent::Kind::Free, root);
      level -= storage.bytes;
    };
    forEachSlot(function.instructions[i], consider);
    std::ranges::for_each(returned[i], consider);
    if (!graph.view[i])
      for (int slot : function.instructions[i].results)
        if (slot >= 0)
          consider(slot);
  }

  void recomputeAll(Level &level) {
    if (std::exchange(isWhole, true))
      return;
    namesSecond = mode == EagerMode::Full; // those of the forward stay
    recompute(level, allOfIt);
  }
  /// The child that `i` is of, and those that discard what it reads. A
  /// checkpoint that is not reentrant computes all of it where the first node
  /// unpacks something (torch/utils/checkpoint.py, unpack_hook).
  void recomputeFor(Level &level, int i) {
    if (!isWhole && unpacksSaved(graph, storages, i))
      recomputeAll(level);
    if (mode != EagerMode::Children)
      return;
    recomputeChild(level, graph.child[i]);
    forEachSlot(function.instructions[i], [&](int slot) {
      if (const Storage &storage = storages[base(slot)]; isDiscarded(storage))
        recomputeChild(level, graph.child[storage.producer]);
    });
  }
  void recomputeChild(Level &level, int child) {
    if (child < 0 || !again.insert(child).second)
      return;
    for (size_t i = 0; i < function.instructions.size(); ++i)
      if (graph.forward[i] && graph.child[i] == child)
        forEachSlot(function.instructions[i], [&](int slot) {
          if (const Storage &storage = storages[base(slot)];
              isDiscarded(storage))
            recomputeChild(level, graph.child[storage.producer]);
        });
    recompute(level, child);
  }

  /// The forward again, of one child or of all, up to the last value that
  /// autograd saves; a reentrant checkpoint stops nowhere.
  void recompute(Level &level, int child) {
    freed.assign(storages.size(), false);
    int last = isReentrant()
                   ? static_cast<int>(function.instructions.size()) - 1
                   : lastSaved;
    auto isPart = [&](int i) {
      return graph.forward[i] && (child == allOfIt || graph.child[i] == child);
    };
    if (child != allOfIt) {
      last = -1;
      for (size_t root = 0; root < storages.size(); ++root)
        if (childHas[root] && isPart(storages[root].producer))
          last = std::max(last, storages[root].producer);
    }
    for (int i = 0; i <= last; ++i) {
      if (!isPart(i))
        continue;
      const Instruction &instr = function.instructions[i];
      if (!kept[i]) {
        for (int slot : instr.results)
          if (slot >= 0 && !graph.view[i] && !isHeld(slot)) {
            level.bytes += storages[slot].bytes;
            emit(StorageEvent::Kind::Allocate, slot, storages[slot].bytes);
          }
        notePeak(level, 0, emitInside(instr));
        const double own =
            seconds(i, variant.recomputeExchangeSeconds, /*again=*/true);
        variant.recomputeSeconds += own, variant.backwardSeconds += own;
        backwardQueue.add(graph, i, own, target, variant.backwardOps,
                          variant.backwardViews);
      }
      freeAfterForward(i, level.bytes, [&](const Storage &storage) {
        const int root = static_cast<int>(&storage - storages.data());
        return storage.saved() || kept[storage.producer] || isHeld(root) ||
               staysInNode(root) || inFrame(storage) ||
               (child != allOfIt && !isPart(storage.producer));
      });
    }
    // Operands of the last operators that nobody reads again.
    for (const Storage &storage : storages) {
      if (storage.owner != Owner::Own || !storage.madeInForward ||
          !isPart(storage.producer))
        continue;
      const int root = static_cast<int>(&storage - storages.data());
      if (child != allOfIt
              ? childHas[root] || held[root]
              : storage.saved() || staysInNode(root) || inFrame(storage))
        continue;
      const bool exists = kept[storage.producer]
                              ? !storage.output
                              : storage.producer <= last && !freed[root];
      if (exists) {
        level.bytes -= storage.bytes;
        emit(StorageEvent::Kind::Free, root);
      }
    }
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
    std::iota(alias.begin(), alias.end(), 0);
    std::vector<int> pending; // freed when the node is done
    int64_t added = 0;
    const std::vector<int> order = backwardOrder(graph, gradients);
    rank.assign(function.instructions.size(), -1);
    for (size_t k = 0; k < order.size(); ++k)
      rank[order[k]] = static_cast<int>(k);
    findLastBackwardUses();
    bool inLoss = graph.loss;
    std::vector<int> fresh; // gradients of parameters that the node made
    for (size_t k = 0; k < order.size(); ++k) {
      const int i = order[k];
      const Instruction &instr = function.instructions[i];
      recomputeFor(level, i);
      const bool loss = beforeLogitsGradient(static_cast<int>(k), order);
      if (inLoss && !loss)
        emit(StorageEvent::Kind::LossEnd, -1);
      inLoss = loss;
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
          emit(StorageEvent::Kind::Allocate, slot, storages[slot].bytes);
          if (storages[slot].parameterGradient) {
            fresh.push_back(slot);
            level.gradients += storages[slot].bytes;
            added += storages[slot].bytes;
          } else {
            level.bytes += storages[slot].bytes;
          }
        }
      }
      const int64_t inside = emitInside(instr);
      if (loss)
        noteLossPeak(level, inside);
      else
        notePeak(level, added, inside);
      const double own = seconds(i, variant.backwardExchangeSeconds);
      variant.backwardSeconds += own;
      backwardQueue.add(graph, i, own, target, variant.backwardOps,
                        variant.backwardViews);
      collectFrees(i, alias, pending, level);
      if (k + 1 < order.size() && graph.node[order[k + 1]] == graph.node[i])
        continue;
      for (int root : pending) {
        level.bytes -= storages[root].bytes;
        emitPending(root);
      }
      for (int root : fresh)
        emit(StorageEvent::Kind::FreeGradient, root);
      fresh.clear();
      pending.clear();
      added = 0;
    }
    if (inLoss)
      emit(StorageEvent::Kind::LossEnd, -1);
    freeFrame(level);
    namesSecond = false;
    for (int root : graph.heldByNodes)
      if (staysInNode(root) || (mode == EagerMode::Full && graph.holds(root) &&
                                isKept(storages[root]))) {
        level.bytes -= storages[root].bytes;
        emit(StorageEvent::Kind::Free, root);
      }
    noteGradients(alias);
  }

  /// A reentrant checkpoint returns.
  void freeFrame(Level &level) {
    for (size_t i = 0; i < storages.size(); ++i) {
      const Storage &storage = storages[i];
      if (!inFrame(storage) || storage.inputGradient)
        continue;
      level.bytes -= storage.bytes;
      emitPending(static_cast<int>(i));
    }
  }

  void emitPending(int root) {
    const Storage &storage = storages[root];
    if (storage.owner == Owner::Input)
      emit(StorageEvent::Kind::FreeInput, storage.index);
    else if (storage.owner == Owner::Tangent)
      emit(StorageEvent::Kind::FreeTangent, storage.index - graph.inputs);
    else
      emit(StorageEvent::Kind::Free, root);
  }

  void noteGradients(const std::vector<int> &alias) {
    for (size_t i = static_cast<size_t>(graph.outputs);
         i < function.outputs.size(); ++i) {
      const int root = alias[base(function.outputs[i])];
      const Storage &storage = storages[root];
      GradientPlace place;
      if (storage.owner == Owner::Own)
        place.storage = root;
      else if (storage.owner == Owner::Tangent)
        place.tangent = storage.index - graph.inputs;
      if (static_cast<int>(i) < graph.outputs + graph.inputGradients)
        variant.trace.inputGradients.push_back(place);
      else
        variant.trace.parameterGradients.push_back(place.storage);
    }
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

  /// The storage that instruction `i` adds to in place, or -1: as the engine
  /// does where gradients of a value meet and nobody else holds the first.
  int summedInPlace(int i, const std::vector<int> &alias) const {
    if (!isGradientSum(graph, gradients, i))
      return -1;
    const Instruction &instr = function.instructions[i];
    const int root = alias[base(instr.args[0].slot)];
    const Storage &storage = storages[root];
    const bool dies = storage.lastBackward == rank[i] && !inFrame(storage) &&
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
          storage.lastBackward > rank[i] || storage.output || finished[root] ||
          staysInNode(root) || inFrame(storage))
        return;
      finished[root] = true;
      const bool inside = storage.owner == Owner::Own &&
                          !storage.madeInForward &&
                          graph.node[storage.producer] == graph.node[i];
      if (inside) {
        level.bytes -= storage.bytes;
        emit(StorageEvent::Kind::Free, root);
      } else {
        pending.push_back(root);
      }
    };
    forEachSlot(instr, consider);
    if (!graph.view[i])
      for (int slot : instr.results)
        if (slot >= 0)
          consider(slot);
  }
  /// Other segments read it too, or a checkpoint keeps it until its end.
  bool heldByCaller(const Storage &storage) const {
    return storage.owner == Owner::Input &&
           (!graph.inputHasGradient[storage.index] || mode != EagerMode::None);
  }

  const SegmentGraph &graph;
  const plan::Function &function;
  EagerMode mode;
  const Target *target;
  std::vector<Storage> storages; // by base slot
  std::vector<bool> gradients;   // by slot
  std::vector<bool> kept;        // by instruction
  std::vector<bool> held;        // by storage: Children keep it
  std::vector<bool> childHas; // by storage: its own child's backward reads it
  std::vector<bool> named;    // by storage: frames of the forward hold it
  int shiftedStorage = -1;
  std::vector<std::vector<int>> returned; // by instruction (CallNames.h)
  std::vector<bool> freed, finished;      // by storage
  std::set<int> again;                    // children that were recomputed
  std::vector<int> rank; // by instruction of the backward: when it runs
  int lastSaved = -1, lossEnd = -1;
  bool isWhole = true; // what the backward reads is there
  /// Storages that nodes of the forward hold are made a second time.
  bool namesSecond = false;
  HostQueue forwardQueue, backwardQueue;
  SegmentVariant variant;
  std::vector<StorageEvent> *events = &variant.trace.forward;
};

} // namespace

SegmentVariant measureVariant(const SegmentGraph &graph, EagerMode mode,
                              const Target *target) {
  return AutogradMemory(graph, mode, target).run();
}

} // namespace accel
