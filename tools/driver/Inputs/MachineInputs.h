//===- MachineInputs.h - How many machines a job has ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_INPUTS_MACHINEINPUTS_H
#define ACCEL_TOOLS_DRIVER_INPUTS_MACHINEINPUTS_H

#include "tools/driver/Inputs/PlanInputs.h"

namespace accel {

/// Where nobody says how many machines there are, as many as the target's
/// nodes hold the ranks, with a note; a warning where a machine is given more
/// ranks than a node has devices.
void takeMachines(PlanInputs &inputs, const PlanOptions &options,
                  DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_INPUTS_MACHINEINPUTS_H
