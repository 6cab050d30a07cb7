//===- Waits.cpp - What a backward holds back and waits for ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Session/Waits.h"

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
          std::optional<int64_t> roomBytes, OpenWaits open)
      : candidate(step.candidate), evaluator(*step.model, target),
        roomBytes(roomBytes) {
    // More than there are units change nothing.
    const int64_t units = candidate.numUnits();
    if (open.reductions)
      most.reductions = units;
    if (open.gathers && candidate.backwardPrefetch > 0)
      most.gathers = units;
    fixed = {open.gathers ? 0 : candidate.holdGathers,
             open.reductions ? 0 : candidate.awaitReductions,
             {}};
  }

  WaitChoice run() {
    none = with({});
    if (roomBytes && fits(none))
      return {};
    const StepPrediction all = with(most);
    if (!worth(all))
      return {};
    return roomBytes ? fewestThatFit(all) : leastMemory();
  }

private:
  StepPrediction with(const WaitChoice &waits) {
    candidate.holdGathers = fixed.gathers + waits.gathers;
    candidate.awaitReductions = fixed.reductions + waits.reductions;
    return evaluator.evaluate(candidate);
  }
  bool fits(const StepPrediction &tried) const {
    return tried.deviceBytes <= *roomBytes;
  }
  bool worth(const StepPrediction &waiting) const {
    return static_cast<double>(waiting.peakBytes) <=
           worthIt * static_cast<double>(none.peakBytes);
  }

  WaitChoice fewestThatFit(const StepPrediction &all) {
    if (!fits(all))
      return {};
    WaitChoice choice;
    for (auto number : {&WaitChoice::reductions, &WaitChoice::gathers})
      for (int64_t n = 0; n <= most.*number; ++n) {
        choice.*number = n;
        const StepPrediction tried = with(choice);
        if (!fits(tried))
          continue;
        choice.why = reason(tried);
        return choice;
      }
    return {};
  }

  /// One number after the other, until neither lowers the peak beside the
  /// other: the loss and the first backward may be alike.
  WaitChoice leastMemory() {
    WaitChoice choice;
    StepPrediction best = none;
    for (int turn = 0;; ++turn) {
      const auto number =
          turn % 2 ? &WaitChoice::gathers : &WaitChoice::reductions;
      if (!lower(number, choice, best) && turn > 0)
        break;
    }
    if (!worth(best))
      return {};
    choice.why = reason(best);
    return choice;
  }

  /// The lowest peak by `number` alone, the fewest of those that have it.
  /// False: `choice` has the lowest already.
  bool lower(int64_t WaitChoice::*number, WaitChoice &choice,
             StepPrediction &best) {
    WaitChoice other = choice;
    bool falls = false;
    for (other.*number = 0; other.*number <= most.*number; ++(other.*number)) {
      StepPrediction tried = with(other);
      if (tried.peakBytes >= best.peakBytes ||
          tried.stepSeconds > alike * none.stepSeconds)
        continue;
      best = std::move(tried);
      choice = other;
      falls = true;
    }
    return falls;
  }

  std::string reason(const StepPrediction &waiting) const {
    auto figures = [](const StepPrediction &p) {
      return formatBytes(p.peakBytes) + " and " + formatSeconds(p.stepSeconds) +
             " a step";
    };
    return "auto: " + figures(waiting) + " instead of " + figures(none) +
           (roomBytes ? ", which does not fit" : "");
  }

  Candidate candidate;
  StepEvaluator evaluator;
  std::optional<int64_t> roomBytes;
  WaitChoice most, fixed;
  StepPrediction none; // nothing is held back or awaited that is open
};

} // namespace

WaitChoice chooseWaits(const DecidedStep &step, const Target &target,
                       std::optional<int64_t> roomBytes, OpenWaits open) {
  const Candidate &candidate = step.candidate;
  // The stages of a pipeline have step models of their own, and what is not
  // sharded stays where it is.
  if (candidate.executor != FrameworkKind::AccelRun || candidate.stages() > 1 ||
      candidate.shards().ranks <= 1 || !open.any())
    return {};
  return Chooser(step, target, roomBytes, open).run();
}

} // namespace accel
