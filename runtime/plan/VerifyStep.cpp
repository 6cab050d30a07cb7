//===- VerifyStep.cpp - The programs of an optimizer step -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/VerifyParts.h"

#include <algorithm>

namespace accel::plan {

namespace {

/// Nothing may be left of a step but shards and optimizer states, and of units
/// that are whole the updated parameters.
void verifyClean(const Plan &plan, RankState &state, const std::string &place,
                 Problems &problems) {
  for (size_t i = 0; i < plan.units.size(); ++i)
    for (Role role :
         {Role::Gathered, Role::Gradient, Role::Receive, Role::ShardGradient})
      if (role == Role::Gathered && plan.units[i].whole) {
        if (!state.units[i].gathered || state.units[i].stale)
          problems.add(place, "every rank holds unit " +
                                  quoted(plan.units[i].name) +
                                  ", which is not gathered after its update");
      } else if (state.units[i][role].live)
        problems.add(place, std::string("the ") + toString(role) +
                                " buffer of unit " +
                                quoted(plan.units[i].name) +
                                " is still allocated at the end");
}

/// The micro-batches of a step one after the other.
void verifyInTurn(const Plan &plan, RankState &state, Problems &problems) {
  for (const auto &[index, repeat] : plan.step) {
    const Program &program = plan.programs[index];
    RankState before;
    for (int64_t i = 0; i < std::min<int64_t>(repeat, 2); ++i) {
      before = state;
      verifyProgram(plan, program, state, problems);
    }
    if (repeat > 2 && !(before == state))
      problems.add("program " + quoted(program.name),
                   "it is repeated but leaves other buffers each time");
  }
}

void verifyEval(const Plan &plan, int eval, RankState state,
                Problems &problems) {
  const Program &program = plan.programs[eval];
  for (const ProgramInstruction &instruction : program.instructions)
    if (instruction.kind == ProgramInstructionKind::ReduceScatter ||
        instruction.kind == ProgramInstructionKind::AllReduce ||
        instruction.kind == ProgramInstructionKind::Optimizer ||
        instruction.kind == ProgramInstructionKind::Offload ||
        instruction.kind == ProgramInstructionKind::Fetch ||
        !instruction.gradients.empty())
      problems.add("program " + quoted(program.name),
                   "an evaluation has no gradients");
  verifyProgram(plan, program, state, problems);
  verifyClean(plan, state, "program " + quoted(program.name), problems);
}

/// What the ranks of one stage run, or all ranks.
void verifyRank(const Plan &plan, int stage, const RankState &clean,
                Problems &problems) {
  const auto step = plan.stepsOf(stage);
  std::vector<int> evals;
  for (int chunk = 0; chunk < plan.numChunks(); ++chunk)
    evals.push_back(plan.evalOf(stage, chunk));
  const std::string place =
      plan.stages.empty() ? "step" : "step of stage " + std::to_string(stage);
  RankState state = clean;
  if (plan.stages.empty())
    verifyInTurn(plan, state, problems);
  else
    verifyFrames(plan, stage, state, problems);
  for (size_t i = 0; i < plan.programs.size(); ++i)
    if (plan.programs[i].stage == stage &&
        std::find(evals.begin(), evals.end(), static_cast<int>(i)) ==
            evals.end() &&
        std::none_of(step.begin(), step.end(), [&](const auto &part) {
          return part.first == static_cast<int>(i);
        }))
      problems.add("program " + quoted(plan.programs[i].name),
                   "neither the step nor the evaluation runs it");
  if (!step.empty()) {
    verifyClean(plan, state, place, problems);
    for (size_t i = 0; i < plan.units.size(); ++i)
      if (plan.units[i].trainable && plan.units[i].stage == stage &&
          !state.units[i].updated)
        problems.add(place, "unit " + quoted(plan.units[i].name) +
                                " is never updated");
    for (int chunk = 0; chunk < plan.numChunks(); ++chunk) {
      int64_t microBatches = 0;
      for (const auto &[index, repeat] : plan.stepOf(stage, chunk))
        microBatches += repeat;
      if (microBatches != plan.job.accumulation)
        problems.add(place, "it runs " + std::to_string(microBatches) +
                                " micro-batches, the job asks for " +
                                std::to_string(plan.job.accumulation));
    }
  }
  for (int eval : evals)
    if (eval >= 0)
      verifyEval(plan, eval, clean, problems);
}

} // namespace

void verifyPrograms(const Plan &plan, Problems &problems) {
  RankState clean;
  clean.units.resize(plan.units.size());
  clean.written.resize(plan.parameters.size());
  for (size_t i = 0; i < plan.units.size(); ++i)
    clean.units[i][Role::Gathered].live = clean.units[i].gathered =
        plan.units[i].whole;
  for (int stage = 0; stage < plan.numStages(); ++stage)
    verifyRank(plan, stage, clean, problems);
}

} // namespace accel::plan
