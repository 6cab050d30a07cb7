//===- Calibrate.h - Times each operator of a plan --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_ACCEL_RUN_CALIBRATE_H
#define ACCEL_TOOLS_ACCEL_RUN_CALIBRATE_H

#include "runtime/collectives/Groups.h"
#include "runtime/execute/Device.h"
#include "runtime/plan/Plan.h"

#include <map>
#include <string>

namespace accel::run {

/// Runs each distinct instruction of the programs of an optimizer step, with
/// its real shapes and random data, and each distinct collective, and returns
/// the seconds of each, those of its fastest runs, as JSON.
/// All ranks must call it; the figures are this rank's. An instruction that
/// cannot run alone (opaque ones, those that draw) is left out and listed.
std::string calibrate(const plan::Plan &plan, Device &device, Groups &groups);

/// The seconds of what could run, of that JSON, by plan::instructionKey.
std::map<std::string, double> measuredOperators(const std::string &figures);

} // namespace accel::run

#endif // ACCEL_TOOLS_ACCEL_RUN_CALIBRATE_H
