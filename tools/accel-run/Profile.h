//===- Profile.h - Measured beside predicted --------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_ACCEL_RUN_PROFILE_H
#define ACCEL_TOOLS_ACCEL_RUN_PROFILE_H

#include "runtime/collectives/Groups.h"
#include "runtime/execute/InstructionTime.h"
#include "runtime/plan/Plan.h"
#include "tools/accel-run/Summary.h"

#include <string>
#include <vector>

namespace accel::run {

/// The programs that an optimizer step runs, and the positions of what is run
/// of them: those of a stage, where the plan is a pipeline's.
struct ProgramRun {
  const plan::Program &program;
  size_t begin, end;
  int64_t microBatch = 0; // of the step
};
std::vector<ProgramRun> runsOf(const plan::Plan &plan, int stage);

/// A Chrome trace (chrome://tracing, Perfetto) of one optimizer step: a track
/// of the program's steps as the rank's main thread ran them (on a GPU, as its
/// compute stream did), one of each stream with collectives, from start to
/// await (on a GPU, while they ran), beside a GPU one of what the host updates,
/// by its clock, and of the copies from it, and counters of own bytes, measured
/// and as the plan's timeline has them. An await on a GPU is exposed
/// communication. A call's arguments hold its floating-point operations,
/// predicted bytes and the rate it reached. `stages` has the times of a rank of
/// each stage, as processes of the trace; of a plan without stages of one rank.
std::string toTrace(const plan::Plan &plan,
                    const std::vector<InstructionTimes> &stages);

/// Whether all ranks take part in a profile: their seconds begin together
/// where there are stages, or where the host updates beside its device.
inline bool profilesTogether(const plan::Plan &plan) {
  return !plan.stages.empty() || plan.offload.states;
}

/// The times of one rank of each stage of a pipeline, that whose place along
/// all other axes is 0. All ranks must call it, each with its own.
std::vector<InstructionTimes> ofStages(Groups &groups, const plan::Plan &plan,
                                       const InstructionTimes &own);

/// How the stages have spent the step.
std::vector<StageUse> useOfStages(const plan::Plan &plan,
                                  const std::vector<InstructionTimes> &stages);

} // namespace accel::run

#endif // ACCEL_TOOLS_ACCEL_RUN_PROFILE_H
