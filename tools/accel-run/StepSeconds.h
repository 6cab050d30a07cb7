//===- StepSeconds.h - The seconds of a timed step --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_ACCEL_RUN_STEPSECONDS_H
#define ACCEL_TOOLS_ACCEL_RUN_STEPSECONDS_H

#include "runtime/execute/InstructionTime.h"
#include "runtime/plan/Plan.h"

#include <map>
#include <string>
#include <vector>

namespace accel::run {

/// What instructions with the same plan::MovedBytes::key move in a step.
struct Moved {
  double bytes = 0, seconds = 0;
};

/// Of an optimizer step: the whole, what the process' threads compute, what
/// clips and updates, and what gathers copy on a CPU before they start. And
/// what other processes had of the thread's core.
struct StepSeconds {
  double whole = 0, computed = 0, updates = 0, copies = 0, lost = 0;
  /// Of the updates and copies, where targets have a rate of them.
  std::map<std::string, Moved> moves;
  bool isDisturbed() const { return lost > 0.05 * whole; }
};

/// The median of the steps in which no other process had the core: ranks wait
/// for each other now and then in each, and in the fastest the least. Where all
/// are disturbed the fastest, with the least of each of its parts.
StepSeconds typicalStep(const std::vector<StepSeconds> &steps);

/// Adds what a program's instructions took but its calls and collectives.
void addParts(const plan::Plan &plan, int stage, const InstructionTimes &times,
              StepSeconds &step);

} // namespace accel::run

#endif // ACCEL_TOOLS_ACCEL_RUN_STEPSECONDS_H
