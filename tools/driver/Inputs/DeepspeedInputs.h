//===- DeepspeedInputs.h - DeepSpeed's jobs for accel-run -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_INPUTS_DEEPSPEEDINPUTS_H
#define ACCEL_TOOLS_DRIVER_INPUTS_DEEPSPEEDINPUTS_H

#include "tools/driver/Inputs/PlanInputs.h"

namespace accel {

/// Where accel-run executes a DeepSpeed job: what the section and its JSON ask
/// for, as the decisions of a job of accel-run's. What those have no meaning
/// for is reported at its key. Then noteDeepspeedKeys, where nothing is wrong.
void takeDeepspeed(const PlanOptions &options, PlanInputs &inputs,
                   DiagnosticEngine &engine);

/// Notes the keys of DeepSpeed's JSON that change no bytes: those that
/// accel-run has taken do.
void noteDeepspeedKeys(const PlanOptions &options, const JobConfig &job,
                       DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_INPUTS_DEEPSPEEDINPUTS_H
