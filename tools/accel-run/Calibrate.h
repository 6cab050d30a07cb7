//===- Calibrate.h - Times each operator of a plan --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_ACCEL_RUN_CALIBRATE_H
#define ACCEL_TOOLS_ACCEL_RUN_CALIBRATE_H

#include "runtime/collectives/Groups.h"
#include "runtime/execute/Device.h"
#include "tools/accel-run/FitTarget.h"
#include "tools/accel-run/Preflight.h"

#include <string>

namespace accel::run {

/// Runs optimizer steps of the plan that change no weight, on the job's data
/// and weights of its seed, and each distinct collective alone, and returns the
/// seconds of each distinct instruction as JSON, where it stands in its step.
/// On CPUs these are seconds of the thread, and what part of the collectives is
/// hidden is measured too. All ranks must call it; the figures are this
/// rank's. `sharesCpus`: the ranks have more threads than the machine CPUs, so
/// that a step is longer than its threads compute whenever it is measured.
std::string calibrate(const Input &input, Device &device, Groups &groups,
                      bool sharesCpus);

/// What of that JSON a target's file takes.
Fitted fitted(const std::string &figures);

} // namespace accel::run

#endif // ACCEL_TOOLS_ACCEL_RUN_CALIBRATE_H
