//===- StepSeconds.cpp - The seconds of a timed step ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-run/StepSeconds.h"

#include "runtime/plan/MovedBytes.h"
#include "tools/accel-run/Profile.h"

#include <algorithm>
#include <iterator>

namespace accel::run {

StepSeconds typicalStep(const std::vector<StepSeconds> &steps) {
  std::vector<StepSeconds> quiet;
  std::copy_if(steps.begin(), steps.end(), std::back_inserter(quiet),
               [](const StepSeconds &step) { return !step.isDisturbed(); });
  const bool none = quiet.empty();
  const std::vector<StepSeconds> &from = none ? steps : quiet;
  auto numberOf = [&](auto &&of) {
    std::vector<double> sorted;
    for (const StepSeconds &step : from)
      sorted.push_back(of(step));
    const auto at = none ? sorted.begin() : sorted.begin() + sorted.size() / 2;
    std::nth_element(sorted.begin(), at, sorted.end());
    return *at;
  };
  StepSeconds result;
  for (auto part : {&StepSeconds::whole, &StepSeconds::computed,
                    &StepSeconds::updates, &StepSeconds::copies})
    result.*part =
        numberOf([part](const StepSeconds &step) { return step.*part; });
  // Each step moves the same.
  result.moves = from.front().moves;
  for (auto &[key, moved] : result.moves)
    moved.seconds = numberOf(
        [&](const StepSeconds &step) { return step.moves.at(key).seconds; });
  const auto fastest = std::min_element(
      from.begin(), from.end(), [](const StepSeconds &a, const StepSeconds &b) {
        return a.whole < b.whole;
      });
  result.lost =
      none ? fastest->lost
           : numberOf([](const StepSeconds &step) { return step.lost; });
  return result;
}

void addParts(const plan::Plan &plan, int stage, const InstructionTimes &times,
              StepSeconds &step) {
  const std::vector<ProgramRun> runs = runsOf(plan, stage);
  const plan::OptimizerRule rule(plan.job.optimizer);
  for (size_t run = 0; run < times.size(); ++run)
    for (const InstructionTime &time : times[run]) {
      const plan::ProgramInstruction &instruction =
          runs[run].program.instructions[time.instruction];
      const auto kind = instruction.kind;
      if (kind == plan::ProgramInstructionKind::Optimizer ||
          kind == plan::ProgramInstructionKind::GradNorm)
        step.updates += time.end - time.begin;
      else if (kind == plan::ProgramInstructionKind::AllGather)
        step.copies += time.end - time.begin;
      if (const auto moved = plan::movedBy(plan, rule, instruction)) {
        Moved &all = step.moves[moved->key];
        all.bytes += moved->bytes;
        all.seconds += time.end - time.begin;
      }
    }
}

} // namespace accel::run
