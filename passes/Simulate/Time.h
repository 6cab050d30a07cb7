//===- Time.h - How long a step takes ---------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Discrete-event simulation of a plan's programs over the compute, gather and
// reduce streams and one wire, on a target. Operators follow a roofline,
// collectives rings; docs/decisions tells what that leaves out.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_SIMULATE_TIME_H
#define ACCEL_PASSES_SIMULATE_TIME_H

#include "passes/Targets/Target.h"
#include "runtime/plan/Plan.h"

namespace accel {

/// What one step of a program takes, in seconds from the program's start.
struct TimelineEvent {
  int step = -1; // Program::steps
  plan::Stream stream = plan::Stream::Compute;
  double begin = 0, end = 0;
  double waited = 0; // before `begin`, for a collective (Compute only)
};

/// One program from an idle machine to the end of its last step.
struct ProgramTime {
  double seconds = 0;
  double computeSeconds = 0;         // the compute stream works
  double exposedSeconds = 0;         // the compute stream waits for collectives
  std::vector<TimelineEvent> events; // only on request
};

/// Simulates one program. `ranksPerNode` 0: the target's own.
ProgramTime simulateTime(const plan::Plan &plan, const plan::Program &program,
                         const Target &target, int64_t ranksPerNode = 0,
                         bool withEvents = false);

/// The optimizer step, program by program: fills `plan.predicted`'s
/// stepSeconds, computeSeconds, exposedCommSeconds, tokensPerSecond (of all
/// ranks) and hasTime. Linear in the number of steps and instructions.
void predictTime(plan::Plan &plan, const Target &target,
                 int64_t ranksPerNode = 0);

/// FLOPs of the model itself for one token, forward and backward, without
/// recomputation: 6 for each trained parameter that is multiplied (4 for a
/// frozen one), and 12 * layers * heads * head size * sequence length for
/// attention, causal or not (Chowdhery et al., PaLM, appendix B; as torchtitan
/// counts).
double modelFlopsPerToken(const plan::Plan &plan);

/// The share of the datasheet's FLOP/s, in the dtype of the computation, that
/// `modelFlopsPerToken` makes at the predicted speed; 0 without a time.
double modelFlopsUtilisation(const plan::Plan &plan, const Target &target);

/// Seconds of one collective of `bytes` (the whole buffer, of all ranks) over
/// mesh axes, alone on the wire. `kind` is AllGather, ReduceScatter or
/// AllReduce.
double collectiveSeconds(const plan::Plan &plan, const Target &target,
                         int64_t ranksPerNode, plan::StepKind kind,
                         const std::vector<std::string> &axes, double bytes);

} // namespace accel

#endif // ACCEL_PASSES_SIMULATE_TIME_H
