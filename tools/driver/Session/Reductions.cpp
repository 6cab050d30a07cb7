//===- Reductions.cpp - Which reductions a backward waits for -------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Session/Reductions.h"

#include "tools/driver/Text/Format.h"

namespace accel {
namespace {

/// Of the peak, what waiting must leave at most to be worth it.
constexpr double worthIt = 0.99;
/// Steps of which nobody can tell which is faster: what Gloo gains beside a
/// backward is taken from the cores that compute it, and CPU seconds of the
/// same steps with none, some and all reductions awaited lie this close
/// (docs/decisions/0047).
constexpr double alike = 1.02;

class Chooser {
public:
  Chooser(const DecidedStep &step, const Target &target,
          std::optional<int64_t> budgetBytes)
      : candidate(step.candidate), evaluator(*step.model, target),
        budgetBytes(budgetBytes) {}

  ReductionChoice run() {
    const StepPrediction none = with(0);
    if (budgetBytes && none.deviceBytes <= *budgetBytes)
      return {};
    // More than there are units change nothing.
    const int64_t most = candidate.numUnits();
    const StepPrediction all = with(most);
    if (!worth(none, all))
      return {};
    ReductionChoice choice;
    StepPrediction best = none;
    for (int64_t await = 1; await <= most; ++await) {
      const StepPrediction tried = await == most ? all : with(await);
      if (budgetBytes && tried.deviceBytes <= *budgetBytes)
        return {await, reason(none, tried)};
      if (budgetBytes || tried.peakBytes >= best.peakBytes ||
          tried.stepSeconds > alike * none.stepSeconds)
        continue;
      best = tried;
      choice.await = await;
    }
    if (choice.await > 0 && worth(none, best))
      choice.why = reason(none, best);
    else
      choice.await = 0;
    return choice;
  }

private:
  StepPrediction with(int64_t await) {
    candidate.awaitReductions = await;
    return evaluator.evaluate(candidate);
  }
  static bool worth(const StepPrediction &none, const StepPrediction &waiting) {
    return static_cast<double>(waiting.peakBytes) <=
           worthIt * static_cast<double>(none.peakBytes);
  }
  std::string reason(const StepPrediction &none,
                     const StepPrediction &waiting) const {
    auto figures = [](const StepPrediction &p) {
      return formatBytes(p.peakBytes) + " and " + formatSeconds(p.stepSeconds) +
             " a step";
    };
    return "auto: " + figures(waiting) + " instead of " + figures(none) +
           (budgetBytes ? ", which does not fit" : "");
  }

  Candidate candidate;
  StepEvaluator evaluator;
  std::optional<int64_t> budgetBytes;
};

} // namespace

ReductionChoice chooseReductions(const DecidedStep &step, const Target &target,
                                 std::optional<int64_t> budgetBytes) {
  const Candidate &candidate = step.candidate;
  // The stages of a pipeline have step models of their own, and gradients that
  // are not sharded stay where they are.
  if (candidate.executor != FrameworkKind::AccelRun || candidate.stages() > 1 ||
      candidate.shards().ranks <= 1)
    return {};
  return Chooser(step, target, budgetBytes).run();
}

} // namespace accel
