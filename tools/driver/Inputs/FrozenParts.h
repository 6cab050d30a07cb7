//===- FrozenParts.h - What freezing parameters does ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_INPUTS_FROZENPARTS_H
#define ACCEL_TOOLS_DRIVER_INPUTS_FROZENPARTS_H

#include "tools/driver/Inputs/PlanInputs.h"

namespace accel {

/// Notes how much is frozen and what that saves on a rank, and reports units of
/// trained and frozen parameters that torch's FSDP refuses or treats as if all
/// were trained: FSDP1 flattens a unit into one parameter
/// (torch/distributed/fsdp/_flat_param.py). False after an error.
bool reportFrozen(const plan::Plan &plan, const PlanInputs &inputs,
                  DiagnosticEngine &engine);

/// The dtypes of a model and its adapter as PEFT loads them, where that stops
/// torch or cannot be planned. False after an error.
bool checkAdapterDtypes(const PlanInputs &inputs, DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_INPUTS_FROZENPARTS_H
