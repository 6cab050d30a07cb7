//===- OpenSizes.h - Sizes that a model leaves open -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What is not said is taken from where it stands: the shapes of data.arrays,
// what a program was exported with, or the bound that it was exported under.
// Each choice has a note.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_INPUTS_OPENSIZES_H
#define ACCEL_TOOLS_DRIVER_INPUTS_OPENSIZES_H

#include "tools/driver/Inputs/PlanInputs.h"

namespace accel {

/// Before anything is taken by default: sizes of --dim and of the job's arrays.
void takeGivenSizes(PlanInputs &inputs, const PlanOptions &options,
                    DiagnosticEngine &engine);

/// Fixed sizes of an exported program, where nothing else is asked for.
void takeExportedSizes(PlanInputs &inputs, const PlanOptions &options,
                       DiagnosticEngine &engine);

/// When micro-batch and sequence are known: what is still open is taken to be
/// as large as it may be, and a note says what each open size is in this plan.
void fixOpenSizes(PlanInputs &inputs, const PlanOptions &options,
                  DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_INPUTS_OPENSIZES_H
