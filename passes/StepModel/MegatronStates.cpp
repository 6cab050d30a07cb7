//===- MegatronStates.cpp - Mamba-2 layers as Megatron runs them ----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/StepModel/MegatronStates.h"

#include "runtime/plan/Operands.h"

namespace accel {
namespace {

using plan::Instruction;

class Writer {
public:
  explicit Writer(SegmentGraph &graph)
      : graph(graph), function(graph.function) {}

  void run() {
    for (size_t i = 0; i < function.instructions.size(); ++i) {
      if (function.instructions[i].op == "fused::mamba2_mixer")
        i = forward(i);
      else if (function.instructions[i].op == "fused::mamba2_mixer_backward")
        i = backward(i);
    }
  }

private:
  /// Returns where the last instruction of the mixer stands.
  size_t forward(size_t i) {
    batched = function.slots[operand(i, 0)].shape.front() > 1;
    if (batched) {
      projected = copy(i, operand(i, 0));
      function.instructions[++i].args[0] = plan::tensorArg(projected);
    }
    Instruction &mixer = function.instructions[i];
    const int result = mixer.results[0], weight = operand(i, 6);
    gated = like(result);
    statistics = mixer.results[2];
    mixer.results[0] = gated;
    mixer.results[2] = -1;
    // The gate is read and the gated output written here, not by the norm.
    mixer.movedBytes -= bytesOf(gated);
    size_t at = i + 1;
    if (batched) {
      gated = copy(at, gated);
      ++at;
    }
    Instruction norm =
        made("megatron::group_norm", i, {gated, weight}, {result, statistics});
    graph.insert(at, norm, /*isForward=*/true, /*isView=*/false);
    return at;
  }

  size_t backward(size_t i) {
    int gradient = operand(i, 0);
    const int weight = operand(i, 7);
    const int weightGradient = function.instructions[i].results[6];
    const int ofGated = like(gradient);
    std::vector<int> results = {ofGated};
    if (weightGradient >= 0)
      results.push_back(weightGradient);
    graph.insert(i,
                 made("megatron::group_norm_backward", i,
                      {gradient, gated, statistics, weight}, results),
                 /*isForward=*/false, /*isView=*/false);
    ++i;
    gradient = ofGated;
    if (batched)
      gradient = copy(i++, gradient);
    Instruction &mixer = function.instructions[i];
    mixer.results[6] = -1;
    mixer.args[0] = plan::tensorArg(gradient);
    if (batched)
      mixer.args[1] = plan::tensorArg(projected);
    mixer.args[9] = plan::tensorArg(gradient); // no statistics of a norm
    if (!batched || mixer.results[0] < 0)
      return i;
    const int result = mixer.results[0];
    mixer.results[0] = like(result);
    Instruction back = made("aten::clone", i, {mixer.results[0]}, {result});
    graph.insert(i + 1, back, /*isForward=*/false, /*isView=*/false);
    return i + 1;
  }

  int operand(size_t i, size_t argument) const {
    return function.instructions[i].args[argument].slot;
  }
  double bytesOf(int slot) const {
    return plan::movedBytesOf(function.slots[slot]);
  }
  int like(int slot) {
    plan::Slot fresh = function.slots[slot];
    fresh.base = static_cast<int>(function.slots.size());
    function.slots.push_back(fresh);
    return fresh.base;
  }
  Instruction made(const char *op, size_t beside, std::vector<int> inputs,
                   std::vector<int> results) const {
    Instruction instruction;
    instruction.op = op;
    instruction.where = function.instructions[beside].where;
    for (int slot : inputs) {
      instruction.args.push_back(plan::tensorArg(slot));
      instruction.movedBytes += bytesOf(slot);
    }
    for (int slot : results)
      if (slot >= 0) // of what nobody reads
        instruction.movedBytes += bytesOf(slot);
    instruction.results = std::move(results);
    return instruction;
  }
  /// A copy of `slot` with its sequences in another order, before the
  /// instruction at `at`.
  int copy(size_t at, int slot) {
    const int result = like(slot);
    const bool half = graph.forward[at];
    graph.insert(at, made("aten::clone", at, {slot}, {result}), half,
                 /*isView=*/false);
    return result;
  }

  SegmentGraph &graph;
  plan::Function &function;
  bool batched = false;                            // several sequences
  int projected = -1, gated = -1, statistics = -1; // slots
};

} // namespace

void useMegatronStates(SegmentGraph &graph) { Writer(graph).run(); }

} // namespace accel
