//===- Timeline.h - Bytes live after each instruction -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The byte-exact memory model of accel-run: what a rank's own buffers hold at
// each instruction of a program and at each of a called function. Storages are
// counted in aligned bytes from the instruction that makes them to the one
// that frees their last slot. Operator workspaces are kept apart.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_TIMELINE_H
#define ACCEL_RUNTIME_PLAN_TIMELINE_H

#include "runtime/plan/Plan.h"

#include <map>

namespace accel::plan {

/// A call's memory relative to its entry.
struct FunctionProfile {
  int64_t peakBytes = 0;      // own storages, over the entry
  int64_t peakTotalBytes = 0; // with workspaces
  int peakInstruction = -1;   // of peakTotalBytes
  int64_t endBytes = 0;       // at return: outputs minus consumed inputs
};
/// `consumedBytes[i]`: bytes freed when the function drops input `i` for the
/// last time (0 where the caller keeps it).
FunctionProfile profileFunction(const Function &function,
                                const std::vector<int64_t> &consumedBytes);
/// By input: the instruction after which nothing in the function holds its
/// storage; the number of instructions where that is at the return.
std::vector<int> inputDeaths(const Function &function);

/// Who holds memory at a point.
struct InstructionMemory {
  int64_t liveBytes = 0;      // after the instruction
  int64_t peakBytes = 0;      // during it, own buffers
  int64_t peakTotalBytes = 0; // during it, with workspaces
  int peakInstruction = -1;   // inside a call
};

struct ProgramTimeline {
  std::vector<InstructionMemory> instructions;
  int peakInstruction = -1;   // of peakTotalBytes
  int64_t peakBytes = 0;      // own buffers
  int64_t peakTotalBytes = 0; // with workspaces
  int64_t endBytes = 0;       // after the last instruction
  Breakdown breakdown;        // at peakInstruction; sums to peakTotalBytes
};

/// Bytes that live between steps: shards, optimizer states, the buffers that
/// programs read, and workspaces that libraries keep. On a rank of a stage,
/// where the plan is a pipeline's.
int64_t persistentBytes(const Plan &plan, int stage = 0);

/// Bytes of pinned host memory that a rank of a stage holds (Plan::offload),
/// from its start to its end.
int64_t hostBytes(const Plan &plan, int stage = 0);
/// Of one unit.
int64_t hostBytes(const Plan &plan, const Unit &unit);
/// Where in that memory the storages are that a program copies there, in bytes
/// from the place that all programs use, by the value that owns the storage.
std::map<int, int64_t> hostPlaces(const Program &program);
/// Of all of them.
int64_t hostBytes(const Program &program);

/// The timeline of one program that starts with `startBytes` live (persistent
/// bytes, and shard gradients that earlier micro-batches left). Of a pipeline
/// that is one frame alone.
ProgramTimeline simulate(const Plan &plan, const Program &program,
                         int64_t startBytes);

/// What each part of the order of a stage's step takes, with the frames that
/// wait while it runs.
std::vector<ProgramTimeline> simulateStage(const Plan &plan, int stage);

/// All programs of the optimizer step in order, then eval: fills `predicted`
/// and each program's peak. Of a pipeline each stage runs its parts in their
/// order, with the frames that wait; `predicted` is of the stage that takes
/// most, and each stage has its own figures.
void predictMemory(Plan &plan);

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_TIMELINE_H
