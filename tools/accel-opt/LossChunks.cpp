//===- LossChunks.cpp - As few pieces of the loss as it takes -------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-opt/LossChunks.h"

#include "passes/Export/BuildPlan.h"
#include "passes/Pipeline/Phases.h"
#include "runtime/plan/Timeline.h"
#include "tools/accel-opt/Render.h"

#include <algorithm>
#include <optional>

using namespace mlir;

namespace accel {
namespace {

struct Tried {
  int64_t chunks = 1;
  int64_t peakBytes = 0;
  bool inLoss = false; // the peak
  std::string where;
};

/// The loss's own call takes the gradient of the loss, or gives the loss.
bool isLoss(const plan::Program &program, const plan::Step &step) {
  if (step.kind != plan::StepKind::Call)
    return false;
  auto has = [](const std::vector<int> &list, int value) {
    return std::find(list.begin(), list.end(), value) != list.end();
  };
  for (int input : program.inputs)
    if (program.values[input].name == "loss_seed" && has(step.inputs, input))
      return true;
  return program.loss >= 0 && has(step.outputs, program.loss);
}

std::optional<Tried> compileWith(MLIRContext &context, const PlanInputs &inputs,
                                 ImportOptions options, int64_t chunks,
                                 DiagnosticEngine &engine) {
  options.lossChunks = chunks;
  options.lossWhy = "tried";
  auto module = importModule(context, inputs, options, engine);
  plan::Plan plan;
  if (failed(module) ||
      failed(runPhases(**module, Phase::Model, Phase::Scheduled)) ||
      failed(buildPlan(**module, plan)))
    return std::nullopt;
  plan::predictMemory(plan);
  Tried tried;
  tried.chunks = chunks;
  tried.peakBytes = plan.predicted.peakBytes;
  tried.where = plan.predicted.peakWhere;
  for (const plan::Program &program : plan.programs)
    if (program.name == plan.predicted.peakProgram &&
        plan.predicted.peakStep >= 0)
      tried.inLoss = isLoss(program, program.steps[plan.predicted.peakStep]);
  return tried;
}

} // namespace

bool chooseLossChunks(MLIRContext &context, const PlanInputs &inputs,
                      ImportOptions &options, DiagnosticEngine &engine) {
  constexpr int64_t most = 256;
  constexpr double worthIt = 0.99;
  const int64_t rows = options.microBatch * options.sequenceLength;
  auto attempt = [&](int64_t chunks) {
    return compileWith(context, inputs, options, chunks, engine);
  };
  std::optional<Tried> best = attempt(1), less;
  if (!best)
    return false;
  const Tried whole = *best;
  while (best->inLoss && 2 * best->chunks <= std::min(most, rows)) {
    std::optional<Tried> next = attempt(2 * best->chunks);
    if (!next)
      return false;
    if (static_cast<double>(next->peakBytes) >
        worthIt * static_cast<double>(best->peakBytes))
      break;
    less = best;
    best = next;
  }
  // Powers of two are not all: the least number is between the last two.
  while (!best->inLoss && less && best->chunks - less->chunks > 1) {
    std::optional<Tried> middle = attempt((less->chunks + best->chunks) / 2);
    if (!middle)
      return false;
    (middle->inLoss ? less : best) = middle;
  }
  options.lossChunks = best->chunks;
  options.lossWhy =
      best->chunks == 1
          ? "auto: the peak is not in the loss, but in " + whole.where
      : best->inLoss
          ? "auto: the peak stays in the loss, at " +
                formatBytes(best->peakBytes) + " instead of " +
                formatBytes(whole.peakBytes) + "; more pieces change little"
          : "auto: the peak is now in " + best->where + ", at " +
                formatBytes(best->peakBytes) + " instead of " +
                formatBytes(whole.peakBytes) + " in the loss; " +
                std::to_string(less->chunks) + " would not do";
  return true;
}

} // namespace accel
