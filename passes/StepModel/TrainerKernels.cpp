//===- TrainerKernels.cpp - A trainer's kernels in a segment --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/StepModel/TrainerKernels.h"

#include "passes/Cost/OpCost.h"
#include "runtime/plan/Exchanges.h"
#include "runtime/plan/Liveness.h"
#include "runtime/plan/Operands.h"

#include <algorithm>

namespace accel {

using frameworks::Selective;
using plan::Arg;
using plan::Instruction;

Target targetOfModel(const Target &target, const frameworks::Kernels &kernels) {
  Target result = target;
  if (kernels.tf32 && target.tf32)
    result.compute[plan::DType::F32] = *target.tf32;
  if (!kernels.libraryRates)
    return result;
  auto raise = [](ComputeRate &rate) {
    if (rate.libraryMatmulEfficiency > 0)
      rate.matmulEfficiency = rate.libraryMatmulEfficiency;
  };
  for (auto &[dtype, rate] : result.compute)
    raise(rate);
  for (auto *narrow : {&result.fp8, &result.fp4})
    if (*narrow)
      raise(**narrow);
  if (target.libraryBytesPerSecond > 0) {
    result.reductionBytesPerSecond *=
        target.libraryBytesPerSecond / target.memoryBytesPerSecond;
    result.memoryBytesPerSecond = target.libraryBytesPerSecond;
  }
  return result;
}

Target targetOfLayers(const Target &target,
                      const frameworks::Kernels &kernels) {
  Target result = target;
  for (auto &[dtype, rate] : result.compute) {
    if (kernels.cudnnAttention && rate.cudnnEfficiency > 0) {
      rate.attentionEfficiency = rate.cudnnEfficiency;
      rate.attentionBackwardEfficiency = rate.cudnnBackwardEfficiency;
      rate.attentionHalfHead = rate.cudnnHalfHead;
    }
    rate.attentionEfficiency *= kernels.attentionRate;
    rate.attentionBackwardEfficiency *= kernels.attentionRate;
  }
  const ComputeRate *narrow = rateOfOperands(target, kernels.operands);
  if (!narrow)
    return result;
  for (plan::DType dtype : {plan::DType::BF16, plan::DType::F16}) {
    ComputeRate &rate = result.compute[dtype];
    rate.matmulEfficiency =
        narrow->peakFlops * narrow->matmulEfficiency / rate.peakFlops;
    rate.halfDepth = narrow->halfDepth;
  }
  return result;
}

static bool isAttention(const Instruction &instruction) {
  return instruction.where.find("attn") != std::string::npos ||
         instruction.where.find("attention") != std::string::npos;
}

/// Between the projections of an attention that is no single kernel. Dropout of
/// scores is, of which there is a matrix for each head, and that of outputs is
/// not.
static bool isCore(const plan::Function &function,
                   const Instruction &instruction) {
  for (const char *op : {"aten::bmm", "aten::_softmax", "scaled_dot_product",
                         "aten::_flash_attention"})
    if (instruction.op.find(op) != std::string::npos)
      return true;
  constexpr size_t scores = 4; // sample, head, query, key
  return instruction.op.starts_with("aten::native_dropout") &&
         function.slots[instruction.args.front().slot].shape.size() == scores;
}

/// The first of what packs the value that instruction `maker` makes: it joins
/// contiguous copies of keys and values.
static size_t startOfPacking(const plan::Function &function,
                             const std::vector<size_t> &makers, size_t maker) {
  const std::vector<Instruction> &list = function.instructions;
  size_t first = maker;
  if (maker < list.size() && list[maker].op.starts_with("aten::cat"))
    for (int64_t slot : list[maker].args.front().ints) {
      const size_t from =
          makers[plan::baseOf(function, static_cast<int>(slot))];
      if (from < list.size() && list[from].op.starts_with("aten::clone"))
        first = std::min(first, from);
    }
  return first;
}

/// Ranks that share a sequence exchange keys, attend block by block and join
/// what the blocks give, all of it in the core's own checkpoint: from what is
/// sent first to the last exchange, kernel or join, in each half.
static std::vector<bool> blocksOfAttention(const SegmentGraph &graph) {
  const plan::Function &function = graph.function;
  const std::vector<Instruction> &list = function.instructions;
  std::vector<bool> blocks(list.size(), false);
  for (const bool half : {true, false}) {
    std::vector<size_t> maker(function.slots.size(), list.size());
    size_t first = list.size(), last = 0;
    bool exchanged = false;
    for (size_t i = 0; i < list.size(); ++i) {
      if (graph.forward[i] != half || !isAttention(list[i]))
        continue;
      for (int slot : list[i].results)
        if (slot >= 0 && !graph.view[i] && opKind(list[i]) != OpKind::Matmul)
          maker[plan::baseOf(function, slot)] = i;
      const auto exchange =
          plan::isExchange(list[i]) ? plan::exchangeOf(list[i]) : std::nullopt;
      const bool shares = exchange && exchange->axes.size() == 1 &&
                          exchange->axes.front() == "cp";
      exchanged |= shares;
      if (shares)
        first = std::min(
            first,
            startOfPacking(function, maker,
                           maker[plan::baseOf(function, exchange->value)]));
      // A join is kept as the attention of one block would be.
      if (shares || isCore(function, list[i]) ||
          (exchanged && graph.pointwiseKeeps[i] &&
           opKind(list[i]) != OpKind::Matmul)) {
        first = std::min(first, i);
        last = i;
      }
    }
    for (size_t i = first; exchanged && i <= last; ++i)
      blocks[i] = graph.forward[i] == half && isAttention(list[i]) &&
                  opKind(list[i]) != OpKind::Matmul;
  }
  return blocks;
}

std::vector<bool> coreOfAttention(const SegmentGraph &graph) {
  const plan::Function &function = graph.function;
  const std::vector<bool> blocks = blocksOfAttention(graph);
  std::vector<bool> core, made(function.slots.size(), false);
  auto base = [&](int slot) { return function.slots[slot].base; };
  for (size_t i = 0; i < function.instructions.size(); ++i) {
    const Instruction &instruction = function.instructions[i];
    bool own = blocks[i] ||
               (isAttention(instruction) && isCore(function, instruction));
    for (int slot : instruction.results)
      if (slot >= 0 && base(slot) != slot && base(slot) >= 0)
        own = own || made[base(slot)];
    for (int slot : instruction.results)
      if (slot >= 0 && (base(slot) == slot || base(slot) < 0))
        made[slot] = own;
    core.push_back(own);
  }
  return core;
}

void markSelective(SegmentGraph &graph, Selective selective) {
  const std::vector<Instruction> &list = graph.function.instructions;
  int matmuls = 0;
  const std::vector<bool> core = selective == Selective::CoreAttention
                                     ? coreOfAttention(graph)
                                     : std::vector<bool>();
  for (size_t i = 0; i < list.size(); ++i) {
    const bool attention = isAttention(list[i]);
    if (selective == Selective::AllButAttention)
      graph.child.push_back(attention ? 0 : -1);
    if (selective == Selective::CoreAttention)
      graph.child.push_back(core[i] ? 0 : -1);
    if (selective != Selective::SecondMatmuls || !graph.forward[i])
      continue;
    const OpKind kind = opKind(list[i]);
    graph.pointwiseKeeps[i] = kind == OpKind::Attention ||
                              list[i].op == "sharding::reduce_scatter" ||
                              (kind == OpKind::Matmul && matmuls++ % 2 == 0);
  }
}

void holdLogits(SegmentGraph &graph) {
  std::vector<Instruction> &list = graph.function.instructions;
  std::vector<int> maker(graph.function.slots.size(), -1);
  for (size_t i = 0; i < list.size(); ++i)
    for (int slot : list[i].results)
      if (slot >= 0)
        maker[slot] = static_cast<int>(i);
  for (size_t i = 0; i < list.size(); ++i) {
    if (!graph.forward[i] || list[i].op != "aten::nll_loss_forward")
      continue;
    // From the scores back to the matmul that made the logits.
    std::vector<Arg> held;
    int slot = list[i].args.front().slot;
    while (maker[slot] >= 0 && !list[maker[slot]].args.empty() &&
           opKind(list[maker[slot]]) != OpKind::Matmul) {
      slot = list[maker[slot]].args.front().slot;
      held.push_back(plan::tensorArg(slot));
    }
    list[i].args.insert(list[i].args.end(), held.begin(), held.end());
  }
}

} // namespace accel
