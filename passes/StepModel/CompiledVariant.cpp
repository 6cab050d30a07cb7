//===- CompiledVariant.cpp - A segment under torch.compile ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/StepModel/CompiledVariant.h"
#include "passes/Segments/InnerBytes.h"

#include "passes/Cost/OpCost.h"
#include "passes/StepModel/CompiledCut.h"
#include "passes/StepModel/CompiledForm.h"
#include "passes/StepModel/InsideEvents.h"
#include "passes/StepModel/SegmentOrder.h"

#include <algorithm>
#include <functional>

namespace accel {

using plan::Instruction;

namespace {

/// One half of a compiled segment: kernels in the order of need, and the
/// storages that each makes, reads last and returns.
class Half {
public:
  Half(const SegmentGraph &graph, const std::vector<int> &instructions,
       const std::vector<int> &results)
      : source(graph), returned(graph.function.slots.size(), false) {
    function = graph.function;
    function.instructions.clear();
    for (int i : instructions) {
      function.instructions.push_back(graph.function.instructions[i]);
      view.push_back(graph.view[i]);
    }
    function.outputs = results;
    for (int slot : results)
      returned[baseOf(slot)] = true;
    maker.assign(function.slots.size(), -1);
    kernel = fusedKernels(function);
    findMakers();
    order();
    findStorages();
  }

  const SegmentGraph &source;
  plan::Function function;               // for its cost, too
  std::vector<std::vector<int>> kernels; // instructions, in order
  std::vector<int> lastKernel;           // by storage: that reads it
  std::vector<bool> written;             // by storage: a kernel writes it

  int baseOf(int slot) const { return function.slots[slot].base; }
  int64_t bytesOf(int root) const {
    int64_t bytes = plan::itemSize(function.slots[root].dtype);
    for (int64_t size : function.slots[root].shape)
      bytes *= size;
    return (bytes + source.rounding - 1) / source.rounding * source.rounding;
  }
  bool isReturned(int root) const { return returned[root]; }
  bool isFused(const std::vector<int> &members) const {
    const OpKind kind = opKind(function.instructions[members.front()]);
    return kind == OpKind::Stream || kind == OpKind::Reduction;
  }
  /// Storages that a kernel's members make.
  std::vector<int> made(const std::vector<int> &members) const {
    std::vector<int> roots;
    for (int i : members)
      for (int slot : function.instructions[i].results)
        if (slot >= 0 && !view[i])
          roots.push_back(slot);
    return roots;
  }
  std::vector<int> reads(const std::vector<int> &members) const {
    std::vector<int> roots;
    for (int i : members)
      forEachSlot(function.instructions[i], [&](int slot) {
        const int root = baseOf(slot);
        if (std::find(roots.begin(), roots.end(), root) == roots.end())
          roots.push_back(root);
      });
    return roots;
  }

private:
  void findMakers() {
    for (size_t i = 0; i < function.instructions.size(); ++i)
      for (int slot : function.instructions[i].results)
        if (slot >= 0 && !view[i])
          maker[slot] = static_cast<int>(i);
  }

  /// What a kernel reads is computed right before it.
  void order() {
    const int count = static_cast<int>(function.instructions.size());
    std::vector<std::vector<int>> members(count);
    for (int i = 0; i < count; ++i)
      if (!view[i])
        members[kernel[i]].push_back(i);
    std::vector<bool> done(count, false);
    std::function<void(int)> emit = [&](int k) {
      if (done[k])
        return;
      done[k] = true;
      for (int root : reads(members[k]))
        if (maker[root] >= 0 && kernel[maker[root]] != k)
          emit(kernel[maker[root]]);
      kernels.push_back(members[k]);
    };
    for (int i = 0; i < count; ++i)
      if (!view[i] && members[kernel[i]].back() == i && isRoot(i))
        emit(kernel[i]);
  }
  /// Operators that are there for others alone wait for those.
  bool isRoot(int i) const {
    for (int slot : function.instructions[i].results)
      if (slot >= 0 && returned[slot])
        return true;
    return !isFused({i});
  }

  void findStorages() {
    lastKernel.assign(function.slots.size(), -1);
    written.assign(function.slots.size(), false);
    for (size_t k = 0; k < kernels.size(); ++k)
      for (int root : reads(kernels[k])) {
        lastKernel[root] = static_cast<int>(k);
        if (maker[root] >= 0 && kernel[maker[root]] != kernel[kernels[k][0]])
          written[root] = true;
      }
    for (size_t k = 0; k < kernels.size(); ++k)
      for (int root : made(kernels[k]))
        written[root] = written[root] || returned[root] || !isFused(kernels[k]);
  }

  std::vector<bool> returned; // by storage
  std::vector<bool> view;     // by instruction
  std::vector<int> maker, kernel;
};

class CompiledMemory {
public:
  CompiledMemory(const SegmentGraph &joint, EagerMode mode,
                 const Target *target)
      : graph(compiledForm(joint)), function(graph.function), mode(mode),
        target(target) {}

  SegmentVariant run() {
    variant.name = mode == EagerMode::Full ? "full" : "none";
    findOwners();
    if (mode != EagerMode::Full)
      saved = compiledSaves(graph);
    else
      for (int i = 0; i < graph.inputs; ++i)
        saved.push_back(function.inputs[i]);
    std::vector<int> outputs(function.outputs.begin(),
                             function.outputs.begin() + graph.outputs);
    std::vector<int> gradients(function.outputs.begin() + graph.outputs,
                               function.outputs.end());
    std::vector<int> leaves = outputs;
    for (int slot : saved)
      leaves.push_back(slot);
    std::vector<int> inputs(function.inputs.begin(),
                            function.inputs.begin() + graph.inputs);
    inputs.insert(inputs.end(), function.params.begin(), function.params.end());
    const Half forward(graph, leadingTo(leaves, inputs), leaves);
    std::vector<int> given = saved;
    given.insert(given.end(), function.inputs.begin() + graph.inputs,
                 function.inputs.end());
    given.insert(given.end(), function.params.begin(), function.params.end());
    const std::vector<int> second = leadingTo(gradients, given);
    const Half backward(graph, second, gradients);
    measureSaved(backward);
    measureForward(forward);
    measureBackward(backward);
    measureSeconds(forward, backward, second);
    return std::move(variant);
  }

private:
  using Kind = StorageEvent::Kind;
  enum class Owner { Own, Input, Tangent, Parameter };

  int baseOf(int slot) const { return function.slots[slot].base; }

  void findOwners() {
    owner.assign(function.slots.size(), Owner::Own);
    index.assign(function.slots.size(), -1);
    for (size_t i = 0; i < function.inputs.size(); ++i) {
      const bool tangent = static_cast<int>(i) >= graph.inputs;
      const int root = baseOf(function.inputs[i]);
      owner[root] = tangent ? Owner::Tangent : Owner::Input;
      index[root] = static_cast<int>(i) - (tangent ? graph.inputs : 0);
    }
    for (int slot : function.params)
      owner[baseOf(slot)] = Owner::Parameter;
  }

  /// Instructions that make `slots` of `given`, in order.
  std::vector<int> leadingTo(const std::vector<int> &slots,
                             const std::vector<int> &given) const {
    std::vector<bool> have(function.slots.size(), false),
        need(function.slots.size(), false);
    for (int slot : given)
      have[slot] = true;
    for (int slot : slots)
      need[slot] = !have[slot];
    std::vector<int> result;
    for (size_t i = function.instructions.size(); i-- > 0;) {
      bool makes = false;
      for (int slot : function.instructions[i].results)
        makes = makes || (slot >= 0 && need[slot]);
      if (!makes)
        continue;
      result.push_back(static_cast<int>(i));
      forEachSlot(function.instructions[i],
                  [&](int slot) { need[slot] = need[slot] || !have[slot]; });
    }
    std::reverse(result.begin(), result.end());
    return result;
  }

  /// Storages of the forward that the backward is given.
  void measureSaved(const Half &backward) {
    variant.savesInput.assign(graph.inputs, false);
    variant.savesOutput.assign(graph.outputs, false);
    isSaved.assign(function.slots.size(), false);
    for (int slot : saved)
      isSaved[baseOf(slot)] = true;
    outputOf.assign(function.slots.size(), -1);
    for (int i = 0; i < graph.outputs; ++i)
      outputOf[baseOf(function.outputs[i])] = i;
    for (size_t root = 0; root < isSaved.size(); ++root) {
      if (!isSaved[root])
        continue;
      if (owner[root] == Owner::Input)
        variant.savesInput[index[root]] = true;
      else if (owner[root] == Owner::Own && outputOf[root] >= 0)
        variant.savesOutput[outputOf[root]] = true;
      else if (owner[root] == Owner::Own)
        variant.savedBytes += backward.bytesOf(static_cast<int>(root));
    }
    for (int i = 0; i < graph.inputs; ++i)
      if (variant.savesInput[i])
        variant.savedInputBytes += backward.bytesOf(baseOf(function.inputs[i]));
    for (int slot : function.params)
      variant.backwardReads.push_back(backward.lastKernel[baseOf(slot)] >= 0);
  }

  /// Runs the kernels of a half. `stays`: a storage that outlives it.
  template <typename Stays, typename Note>
  void play(const Half &half, std::vector<StorageEvent> &events, Stays stays,
            Note note) {
    for (size_t k = 0; k < half.kernels.size(); ++k) {
      const std::vector<int> &members = half.kernels[k];
      std::vector<int> dying;
      for (int root : half.reads(members))
        if (half.lastKernel[root] == static_cast<int>(k) && !stays(root) &&
            !half.isReturned(root) && (half.written[root] || given(root)))
          dying.push_back(root);
      for (int root : half.made(members)) {
        if (!half.written[root])
          continue;
        // A fused kernel writes over what it was the last to read.
        if (half.isFused(members))
          for (auto at = dying.begin(); at != dying.end(); ++at)
            if (owner[*at] == Owner::Own && !isSaved[*at] &&
                half.bytesOf(*at) == half.bytesOf(root)) {
              free(*at, half, events);
              dying.erase(at);
              break;
            }
        events.push_back({Kind::Allocate, root, half.bytesOf(root)});
        note(root, half.bytesOf(root));
        if (half.lastKernel[root] < 0 && !half.isReturned(root) && !stays(root))
          dying.push_back(root);
      }
      int64_t workspace = 0;
      for (int i : members) {
        const Instruction &instr = half.function.instructions[i];
        emitLibraryOf(graph, half.function, instr, events);
        workspace = std::max(
            workspace, std::max(instr.workspaceBytes,
                                graph.inside && !half.isFused(members)
                                    ? peakOf(innerBytes(half.function, instr,
                                                        graph.device))
                                    : 0));
      }
      if (workspace > 0) {
        const int nobody = static_cast<int>(function.slots.size());
        events.push_back({Kind::Allocate, nobody, workspace});
        note(-1, workspace);
        events.push_back({Kind::Free, nobody, 0});
        level -= workspace;
      }
      for (int root : dying)
        free(root, half, events);
    }
  }
  bool given(int root) const {
    return inBackward && (isSaved[root] || owner[root] == Owner::Input);
  }
  void free(int root, const Half &half, std::vector<StorageEvent> &events) {
    level -= half.bytesOf(root);
    if (owner[root] == Owner::Input)
      events.push_back({Kind::FreeInput, index[root], 0});
    else
      events.push_back({Kind::Free, root, 0});
  }

  void measureForward(const Half &half) {
    level = 0;
    play(
        half, variant.trace.forward,
        [&](int root) {
          return owner[root] != Owner::Own || isSaved[root] ||
                 outputOf[root] >= 0;
        },
        [&](int, int64_t bytes) {
          level += bytes;
          variant.forwardPeakBytes = std::max(variant.forwardPeakBytes, level);
        });
    for (int i = 0; i < graph.outputs; ++i) {
      const int root = baseOf(function.outputs[i]);
      variant.trace.outputs.push_back(owner[root] == Owner::Own ? root : -1);
    }
    variant.forwardOps = static_cast<int>(half.kernels.size());
  }

  void measureBackward(const Half &half) {
    inBackward = true;
    level = 0;
    auto &events = variant.trace.backward;
    if (graph.loss)
      events.push_back({Kind::LossEnd, -1, 0});
    std::vector<bool> ofParameter(function.slots.size(), false);
    const size_t first =
        static_cast<size_t>(graph.outputs + graph.inputGradients);
    for (size_t i = first; i < function.outputs.size(); ++i)
      ofParameter[baseOf(function.outputs[i])] = true;
    int64_t gradients = 0;
    play(
        half, events,
        [&](int root) {
          // The engine holds what it gave to the region; other readers of an
          // input, or a checkpoint, hold that.
          return owner[root] == Owner::Tangent ||
                 owner[root] == Owner::Parameter ||
                 (owner[root] == Owner::Own && isSaved[root] &&
                  outputOf[root] >= 0) ||
                 (owner[root] == Owner::Input &&
                  (!graph.inputHasGradient[index[root]] ||
                   mode == EagerMode::Full));
        },
        [&](int root, int64_t bytes) {
          if (root >= 0 && ofParameter[root])
            gradients += bytes;
          else
            level += bytes;
          variant.backwardPeakBytes =
              std::max(variant.backwardPeakBytes, level);
          variant.backwardPeakFreshBytes =
              std::max(variant.backwardPeakFreshBytes, level + gradients);
        });
    variant.backwardPeakAddedBytes = variant.backwardPeakFreshBytes;
    for (int i = 0; i < static_cast<int>(function.inputs.size()) - graph.inputs;
         ++i)
      if (half.lastKernel[baseOf(function.inputs[graph.inputs + i])] >= 0)
        events.push_back({Kind::FreeTangent, i, 0});
    noteGradients();
    variant.backwardOps = static_cast<int>(half.kernels.size());
  }

  void noteGradients() {
    for (size_t i = static_cast<size_t>(graph.outputs);
         i < function.outputs.size(); ++i) {
      const int root = baseOf(function.outputs[i]);
      GradientPlace place;
      if (owner[root] == Owner::Own)
        place.storage = root;
      else if (owner[root] == Owner::Tangent)
        place.tangent = index[root];
      if (static_cast<int>(i) < graph.outputs + graph.inputGradients) {
        variant.trace.inputGradients.push_back(place);
        continue;
      }
      variant.trace.parameterGradients.push_back(place.storage);
      if (place.storage >= 0)
        variant.trace.backward.push_back({Kind::FreeGradient, root, 0});
    }
  }

  void measureSeconds(const Half &forward, const Half &backward,
                      const std::vector<int> &second) {
    if (!target)
      return;
    const FunctionCost first = fusedCost(forward.function, *target);
    const FunctionCost last = fusedCost(backward.function, *target);
    variant.compiledForwardKernels = first.launches;
    variant.compiledBackwardKernels = last.launches;
    variant.forwardSeconds = first.seconds;
    variant.backwardSeconds = last.seconds;
    variant.compiledForwardSeconds = variant.forwardSeconds;
    variant.compiledBackwardSeconds = variant.backwardSeconds;
    for (int i : second)
      if (graph.forward[i] && mode == EagerMode::Full)
        variant.recomputeSeconds +=
            opSeconds(function, function.instructions[i], *target);
    variant.recomputeSeconds =
        std::min(variant.recomputeSeconds, variant.backwardSeconds);
  }

  SegmentGraph graph;
  const plan::Function &function;
  EagerMode mode;
  const Target *target;
  std::vector<int> saved;   // slots
  std::vector<Owner> owner; // by storage
  std::vector<int> index, outputOf;
  std::vector<bool> isSaved;
  bool inBackward = false;
  int64_t level = 0;
  SegmentVariant variant;
};

} // namespace

SegmentVariant measureCompiled(const SegmentGraph &graph, EagerMode mode,
                               const Target *target) {
  return CompiledMemory(graph, mode, target).run();
}

} // namespace accel
