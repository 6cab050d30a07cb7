//===- LossChunks.cpp - In how many chunks the loss pays off --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Session/LossChunks.h"

#include "passes/Export/BuildPlan.h"
#include "passes/Pipeline/Phases.h"
#include "passes/Simulate/Time.h"
#include "runtime/plan/Chunks.h"
#include "runtime/plan/Timeline.h"
#include "tools/driver/Text/Format.h"

#include <algorithm>
#include <optional>

using namespace mlir;

namespace accel {
namespace {

struct Tried {
  int64_t chunks = 1;
  int64_t peakBytes = 0;
  double seconds = 0; // of a step
  bool fits = true;
  bool inLoss = false; // the peak
  std::string where;
};

/// The loss's own call takes the gradient of the loss, or gives the loss.
bool isLoss(const plan::Program &program,
            const plan::ProgramInstruction &instruction) {
  if (instruction.kind != plan::ProgramInstructionKind::Call)
    return false;
  auto has = [](const std::vector<int> &list, int value) {
    return std::find(list.begin(), list.end(), value) != list.end();
  };
  for (int input : program.inputs)
    if (program.values[input].name == "loss_seed" &&
        has(instruction.inputs, input))
      return true;
  return program.loss >= 0 && has(instruction.outputs, program.loss);
}

/// Seconds of a step in which the loss's matmuls move memory. The time model
/// hides that behind their FLOPs; the table, which each chunk reads and whose
/// gradient it reads and writes, is larger than a cache, and a chunk of few
/// rows has few FLOPs to hide it behind.
double matmulTraffic(const plan::Plan &plan, const Target &machine) {
  double bytes = 0;
  // Of a pipeline the last chunk has the loss.
  const plan::ChunkLayout layout = plan::chunkLayoutOf(plan);
  for (const auto &[index, repeat] :
       plan.stepsOf(layout.stageOf(layout.count() - 1))) {
    const plan::Program &program = plan.programs[index];
    for (const plan::ProgramInstruction &instruction : program.instructions) {
      if (!isLoss(program, instruction))
        continue;
      for (const plan::Instruction &one :
           plan.functions[instruction.function].instructions)
        if (one.op.starts_with("aten::mm") || one.op.starts_with("aten::addmm"))
          bytes += one.movedBytes * static_cast<double>(repeat);
    }
  }
  return bytes / machine.memoryBytesPerSecond;
}

std::optional<Tried> compileWith(const Importer &importer,
                                 const LossJudge &judge, ImportOptions options,
                                 int64_t chunks) {
  options.lossChunks = LossChunks{chunks};
  options.lossWhy = "tried";
  OwningOpRef<mlir::ModuleOp> module = importer(options);
  plan::Plan plan;
  if (!module ||
      failed(runPhases(*module, Phase::Model, Phase::Scheduled,
                       judge.verification)) ||
      failed(buildPlan(*module, plan)))
    return std::nullopt;
  plan::predictMemory(plan);
  Tried tried;
  tried.chunks = chunks;
  tried.peakBytes = plan.predicted.peakBytes;
  tried.where = plan.predicted.peakWhere;
  predictTime(plan, judge.machine, judge.ranksPerNode);
  tried.seconds =
      plan.predicted.stepSeconds + matmulTraffic(plan, judge.machine);
  if (judge.roomBytes)
    tried.fits = judge.machine.reservedBytes(tried.peakBytes) +
                     judge.machine.contextBytes <=
                 *judge.roomBytes;
  for (const plan::Program &program : plan.programs)
    if (program.name == plan.predicted.peakProgram &&
        plan.predicted.peakInstruction >= 0)
      tried.inLoss =
          isLoss(program, program.instructions[plan.predicted.peakInstruction]);
  return tried;
}

/// The choice among `tried`, which are in the order of their chunks.
const Tried &choose(const std::vector<Tried> &tried) {
  constexpr double alike = 1.01;
  auto product = [](const Tried &t) {
    return static_cast<double>(t.peakBytes) * t.seconds;
  };
  double least = product(tried.front());
  for (const Tried &t : tried)
    least = std::min(least, product(t));
  const Tried &chosen =
      *std::find_if(tried.begin(), tried.end(), [&](const Tried &t) {
        return product(t) <= alike * least;
      });
  if (chosen.fits)
    return chosen;
  auto fitting = std::find_if(tried.begin(), tried.end(),
                              [](const Tried &t) { return t.fits; });
  if (fitting != tried.end())
    return *fitting;
  return *std::min_element(
      tried.begin(), tried.end(),
      [](const Tried &a, const Tried &b) { return a.peakBytes < b.peakBytes; });
}

std::string reason(const Tried &chosen, const std::vector<Tried> &tried) {
  const Tried &whole = tried.front();
  auto figures = [](const Tried &t) {
    return formatBytes(t.peakBytes) + " and " + formatSeconds(t.seconds) +
           " a step";
  };
  if (tried.size() == 1 && !whole.inLoss)
    return "auto: the peak is not in the loss, but in " + whole.where;
  std::string text = "auto: ";
  if (chosen.chunks == 1)
    text += figures(whole) + ", the least product of both";
  else
    text += figures(chosen) + " instead of " + figures(whole) +
            (chosen.inLoss ? "; the peak stays in the loss"
                           : "; the peak is now in " + chosen.where);
  // What the neighbour with more chunks would bring.
  auto next = std::find_if(tried.begin(), tried.end(), [&](const Tried &t) {
    return t.chunks > chosen.chunks;
  });
  if (next != tried.end())
    text +=
        "; with " + std::to_string(next->chunks) + " chunks " + figures(*next);
  if (!chosen.fits)
    text += "; no number of chunks makes it fit";
  return text;
}

} // namespace

bool chooseLossChunks(const Importer &importer, const LossJudge &judge,
                      ImportOptions &options) {
  constexpr int64_t most = 256;
  constexpr double worthIt = 0.99;
  const int64_t rows = options.microBatch * options.sequenceLength;
  std::vector<Tried> tried;
  auto attempt = [&](int64_t chunks) {
    std::optional<Tried> one = compileWith(importer, judge, options, chunks);
    if (!one)
      return false;
    auto behind = std::find_if(tried.begin(), tried.end(), [&](const Tried &t) {
      return t.chunks > one->chunks;
    });
    tried.insert(behind, *one);
    return true;
  };
  if (!attempt(1))
    return false;
  while (tried.back().inLoss &&
         2 * tried.back().chunks <= std::min(most, rows)) {
    const double before = static_cast<double>(tried.back().peakBytes);
    if (!attempt(2 * tried.back().chunks))
      return false;
    if (static_cast<double>(tried.back().peakBytes) > worthIt * before)
      break;
  }
  // Powers of two are not all: the least number whose peak is not in the loss
  // is between the last two.
  if (tried.size() > 1 && !tried.back().inLoss) {
    int64_t less = tried[tried.size() - 2].chunks, more = tried.back().chunks;
    while (more - less > 1) {
      const int64_t middle = (less + more) / 2;
      if (!attempt(middle))
        return false;
      auto at = std::find_if(tried.begin(), tried.end(), [&](const Tried &t) {
        return t.chunks == middle;
      });
      (at->inLoss ? less : more) = middle;
    }
  }
  const Tried &chosen = choose(tried);
  options.lossChunks = LossChunks{chosen.chunks};
  options.lossWhy = reason(chosen, tried);
  return true;
}

} // namespace accel
