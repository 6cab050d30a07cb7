//===- ModelFlops.cpp - What the model itself computes --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Simulate/Time.h"
#include "runtime/plan/Mesh.h"
#include "runtime/plan/Operands.h"

#include <algorithm>
#include <string_view>

namespace accel {

using namespace plan;

namespace {

int baseOf(const Function &function, int slot) {
  const int base = function.slots[slot].base;
  return base < 0 ? slot : base;
}

/// The part of a parameter that one of `tokens` meets: of experts [E, K, N]
/// that T tokens' rows are divided among, rows / T of E; a rank's experts meet
/// other ranks' tokens too, so that this can be more than 1. The operator's
/// FLOPs are of the rows that are expected: its first operand has the places of
/// a bound of them, of which some stay empty.
double partUsed(const Function &function, const Instruction &instruction,
                double tokens) {
  if (instruction.op != "aten::_grouped_mm" || tokens <= 0)
    return 1;
  const std::vector<int64_t> &experts =
      function.slots[instruction.args[1].slot].shape;
  if (experts.size() != 3 || elementsOf(experts) < 1)
    return 1;
  return instruction.flops / (2 * elementsOf(experts) * tokens);
}

/// Its result is its operand in another form: a cast, or what a quantised
/// weight is unpacked into and saved as (GPTQ's, Dequantize.h).
bool copies(const Instruction &instruction) {
  return (instruction.op == "aten::_to_copy" ||
          instruction.op == "accel::dequantize") &&
         !instruction.results.empty() &&
         instruction.args[0].kind == Arg::Kind::Tensor;
}

/// By parameter of a function: the part that a token is multiplied with; 0
/// where only look-ups read it.
std::vector<double> multipliedParams(const Function &function, double tokens,
                                     bool throughCopies = false) {
  std::vector<int> paramOf(function.slots.size(), -1);
  for (size_t i = 0; i < function.params.size(); ++i)
    paramOf[function.params[i]] = static_cast<int>(i);
  if (throughCopies)
    for (const Instruction &instruction : function.instructions)
      if (copies(instruction))
        paramOf[instruction.results[0]] =
            paramOf[baseOf(function, instruction.args[0].slot)];
  std::vector<double> multiplied(function.params.size());
  for (const Instruction &instruction : function.instructions) {
    if (instruction.flops <= 0 || instruction.op == "aten::embedding")
      continue;
    for (const Arg &arg : instruction.args) {
      if (arg.kind != Arg::Kind::Tensor)
        continue;
      const int param = paramOf[baseOf(function, arg.slot)];
      if (param >= 0)
        multiplied[param] = std::max(multiplied[param],
                                     partUsed(function, instruction, tokens));
    }
  }
  return multiplied;
}

/// Model FLOPs of the attention whose backward operator this is: two matmuls
/// forward and four backward over all scores. Counted at backward operators,
/// for which a recomputed forward makes no difference. The operands of every
/// kernel begin with the output's gradient, query and key, [B, H, S, D].
double attentionFlops(const Function &function,
                      const Instruction &instruction) {
  const std::string_view op = instruction.op;
  if (op.find("attention") == op.npos || op.find("backward") == op.npos ||
      instruction.args.size() < 3 ||
      instruction.args[1].kind != Arg::Kind::Tensor ||
      instruction.args[2].kind != Arg::Kind::Tensor)
    return 0;
  const std::vector<int64_t> &query =
      function.slots[instruction.args[1].slot].shape;
  const std::vector<int64_t> &key =
      function.slots[instruction.args[2].slot].shape;
  if (query.size() != 4 || key.size() != 4)
    return 0;
  double flops = 6 * 2;
  for (int64_t size : query)
    flops *= static_cast<double>(size);
  // aten::_flash_attention_backward has [B, S, H, D].
  const size_t tokens = op.starts_with("aten::_flash_attention") ? 1 : 2;
  return flops * static_cast<double>(key[tokens]);
}

/// Of ring attention a rank leaves out the blocks that a mask hides: all its
/// scores, as of other causal attention, are its own tokens' with themselves as
/// often as the ring has ranks. How often those of `instruction` count.
double timesOfRing(const RingOfRanks &ring, const Function &function,
                   const Instruction &instruction) {
  if (ring.ranks == 1 || attentionFlops(function, instruction) == 0)
    return 1;
  const int64_t own = ring.sequenceLength / ring.ranks;
  auto tokensOf = [&](size_t arg) {
    return function.slots[instruction.args[arg].slot].shape[2];
  };
  if (tokensOf(1) == own && tokensOf(2) == own)
    return static_cast<double>(ring.ranks);
  return tokensOf(1) == own / 2 || tokensOf(2) == own / 2 ? 0 : 1;
}

} // namespace

FunctionFlops functionFlops(const Function &function, double tokens,
                            const RingOfRanks &ring) {
  FunctionFlops flops;
  flops.multiplied = multipliedParams(function, tokens, /*throughCopies=*/true);
  for (const Instruction &instruction : function.instructions)
    flops.attention += attentionFlops(function, instruction) *
                       timesOfRing(ring, function, instruction);
  return flops;
}

double modelFlopsPerToken(const Plan &plan) {
  const double perBatch = static_cast<double>(plan.job.itemsPerMicroBatch());
  const Mesh mesh{plan.axes};
  const RingOfRanks ring = {mesh.size("cp"), plan.job.sequenceLength};
  std::vector<std::vector<double>> multipliedIn;
  std::vector<double> attentionOf;
  for (const Function &function : plan.functions) {
    multipliedIn.push_back(multipliedParams(function, perBatch));
    double &attention = attentionOf.emplace_back(0);
    for (const Instruction &instruction : function.instructions)
      attention += attentionFlops(function, instruction) *
                   timesOfRing(ring, function, instruction);
  }
  std::vector<double> multiplied(plan.parameters.size());
  double attention = 0, microBatches = 0;
  for (int stage = 0; stage < plan.numStages(); ++stage)
    for (const auto &[index, repeat] : plan.stepsOf(stage)) {
      if (stage == 0 && plan.programs[index].chunk == 0)
        microBatches += static_cast<double>(repeat);
      for (const ProgramInstruction &instruction :
           plan.programs[index].instructions) {
        if (instruction.kind != ProgramInstructionKind::Call)
          continue;
        attention +=
            static_cast<double>(repeat) * attentionOf[instruction.function];
        const std::vector<double> &used = multipliedIn[instruction.function];
        for (size_t i = 0; i < instruction.params.size() && i < used.size();
             ++i) {
          double &part = multiplied[instruction.params[i].parameter];
          part = std::max(part, used[i]);
        }
      }
    }
  double flops = 0;
  for (size_t i = 0; i < plan.parameters.size(); ++i)
    flops += multiplied[i] * (plan.parameters[i].trainable ? 6.0 : 4.0) *
             static_cast<double>(ownNumel(plan, plan.parameters[i]));
  const double tokens = microBatches * perBatch;
  // Ranks that share a sample compute a part of its tokens' FLOPs each; those
  // that share the sequence alone multiply their tokens with all of a layer.
  // The programs of all stages are one rank of each.
  const auto sharing =
      static_cast<double>(mesh.ranksPerSample() / plan.numStages());
  const double splitting =
      sharing / static_cast<double>(mesh.ranksPerSequence());
  return tokens > 0 ? splitting * flops + sharing * attention / tokens : 0;
}

double modelFlopsUtilisation(const Plan &plan, const Target &target) {
  if (!plan.predicted.hasTime || plan.units.empty())
    return 0;
  // The dtype in which most parameters are used.
  const auto largest = std::max_element(
      plan.units.begin(), plan.units.end(),
      [](const Unit &a, const Unit &b) { return a.padded < b.padded; });
  const double peak =
      target.peakFlops(largest->gather) * static_cast<double>(plan.ranks());
  return peak > 0
             ? modelFlopsPerToken(plan) * plan.predicted.tokensPerSecond / peak
             : 0;
}

} // namespace accel
