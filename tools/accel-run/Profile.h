//===- Profile.h - Measured beside predicted --------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_ACCEL_RUN_PROFILE_H
#define ACCEL_TOOLS_ACCEL_RUN_PROFILE_H

#include "runtime/execute/InstructionTime.h"
#include "runtime/plan/Plan.h"

#include <string>
#include <vector>

namespace accel::run {

/// A Chrome trace (chrome://tracing, Perfetto) of one optimizer step: a track
/// of the program's steps as the rank's main thread ran them (on a GPU, as its
/// compute stream did), one of each stream with collectives, from start to
/// await (on a GPU, while they ran), and counters of own bytes, measured and as
/// the plan's timeline has them. An await on a GPU is exposed communication. A
/// call's arguments hold its floating-point operations, predicted bytes and the
/// rate it reached. `times` has one list for each program run, in the plan's
/// order.
std::string toTrace(const plan::Plan &plan, const InstructionTimes &times);

} // namespace accel::run

#endif // ACCEL_TOOLS_ACCEL_RUN_PROFILE_H
