//===- MegatronFused.cpp - Megatron's pointwise kernels -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/StepModel/MegatronFused.h"

#include "passes/StepModel/SegmentOrder.h"
#include "runtime/plan/Operands.h"

namespace accel {

using plan::Instruction;

void fuseDropoutSums(SegmentGraph &graph) {
  plan::Function &function = graph.function;
  auto base = [&](int slot) { return function.slots[slot].base; };
  // By storage: the dropout that made it, and how often it is read.
  std::vector<Instruction *> dropout(function.slots.size(), nullptr);
  std::vector<int> reads(function.slots.size(), 0);
  for (size_t i = 0; i < function.instructions.size(); ++i) {
    if (graph.view[i])
      continue;
    Instruction &instruction = function.instructions[i];
    forEachSlot(instruction, [&](int slot) { ++reads[base(slot)]; });
    if (graph.forward[i] && instruction.op == "aten::native_dropout")
      dropout[base(instruction.results.front())] = &instruction;
  }
  for (Instruction &sum : function.instructions) {
    if (sum.op != "aten::add.Tensor")
      continue;
    forEachSlot(sum, [&](int slot) {
      const int value = base(slot);
      if (!dropout[value] || reads[value] != 1)
        return;
      const double bytes = plan::movedBytesOf(function.slots[value]);
      dropout[value]->movedBytes -= bytes;
      sum.movedBytes -= bytes;
    });
  }
}

} // namespace accel
