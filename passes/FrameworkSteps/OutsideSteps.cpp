//===- OutsideSteps.cpp - What a job holds beside its usual step ----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/OutsideSteps.h"

#include "passes/FrameworkSteps/Megatron.h"
#include "passes/FrameworkSteps/StepRun.h"

namespace accel {
namespace {

/// A candidate's step that has begun.
struct Begun {
  Begun(const StepModel &model, const Target &target,
        const Candidate &candidate)
      : layout(model, target) {
    layout.prepare(candidate, RankClass::First);
    engine.reset(/*folding=*/true);
    engine.overlapTax = 1 - target.overlap;
    run = makeStepRun(layout, engine);
    run->begin();
  }
  /// Since the last call, or the beginning.
  int64_t peak() {
    const int64_t bytes = std::max(engine.peak().total, engine.total());
    engine.restartPeak();
    return bytes;
  }

  StepLayout layout;
  Engine engine;
  std::unique_ptr<StepRun> run;
};

} // namespace

std::optional<FirstStep> firstStep(const StepModel &model, const Target &target,
                                   const Candidate &candidate) {
  if (isPipelined(candidate))
    return std::nullopt;
  Begun begun(model, target, candidate);
  FirstStep first;
  first.passingBytes = begun.run->passingGradients();
  const int64_t states =
      candidate.executor == FrameworkKind::Deepspeed
          ? 0
          : begun.engine.levels()[static_cast<int>(Holding::Optimizer)];
  begun.engine.restartPeak();
  begun.run->computeGradients();
  first.peakBytes = std::max(begun.peak() - states, begun.engine.total());
  begun.run->updateWeights();
  first.peakBytes = std::max(first.peakBytes, begun.peak());
  return first;
}

std::optional<int64_t> evaluationBytes(const StepModel &model,
                                       const Target &target,
                                       const Candidate &candidate,
                                       int64_t lossParts) {
  if (isPipelined(candidate))
    return std::nullopt;
  Begun begun(model, target, candidate);
  const int64_t stays = begun.engine.total() - begun.run->passingGradients();
  begun.engine.restartPeak();
  begun.run->evaluate(lossParts);
  return std::max<int64_t>(0, begun.peak() - stays);
}

} // namespace accel
