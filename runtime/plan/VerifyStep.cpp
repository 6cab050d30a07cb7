//===- VerifyStep.cpp - The programs of an optimizer step -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/VerifyParts.h"

namespace accel::plan {

namespace {

/// Nothing may be left of a step but shards and optimizer states.
void verifyClean(const Plan &plan, RankState &state, const std::string &place,
                 Problems &problems) {
  for (size_t i = 0; i < plan.units.size(); ++i)
    for (Role role :
         {Role::Gathered, Role::Gradient, Role::Receive, Role::ShardGradient})
      if (state.units[i][role].live)
        problems.add(place, std::string("the ") + toString(role) +
                                " buffer of unit " +
                                quoted(plan.units[i].name) +
                                " is still allocated at the end");
}

} // namespace

void verifyPrograms(const Plan &plan, Problems &problems) {
  RankState clean;
  clean.units.resize(plan.units.size());
  clean.written.resize(plan.parameters.size());

  RankState state = clean;
  int64_t microBatches = 0;
  for (const auto &[index, repeat] : plan.step) {
    microBatches += repeat;
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
  for (size_t i = 0; i < plan.programs.size(); ++i)
    if (static_cast<int>(i) != plan.eval &&
        std::none_of(plan.step.begin(), plan.step.end(), [&](const auto &part) {
          return part.first == static_cast<int>(i);
        }))
      problems.add("program " + quoted(plan.programs[i].name),
                   "neither the step nor the evaluation runs it");
  if (!plan.step.empty()) {
    verifyClean(plan, state, "step", problems);
    for (size_t i = 0; i < plan.units.size(); ++i)
      if (plan.units[i].trainable && !state.units[i].updated)
        problems.add("step", "unit " + quoted(plan.units[i].name) +
                                 " is never updated");
    if (microBatches != plan.job.accumulation)
      problems.add("step", "it runs " + std::to_string(microBatches) +
                               " micro-batches, the job asks for " +
                               std::to_string(plan.job.accumulation));
  }
  if (plan.eval >= 0) {
    state = clean;
    const Program &eval = plan.programs[plan.eval];
    for (const ProgramInstruction &instruction : eval.instructions)
      if (instruction.kind == ProgramInstructionKind::ReduceScatter ||
          instruction.kind == ProgramInstructionKind::AllReduce ||
          instruction.kind == ProgramInstructionKind::Optimizer ||
          !instruction.gradients.empty())
        problems.add("program " + quoted(eval.name),
                     "an evaluation has no gradients");
    verifyProgram(plan, eval, state, problems);
    verifyClean(plan, state, "program " + quoted(eval.name), problems);
  }
}

} // namespace accel::plan
