//===- OptimizerInputs.h - The optimizer of a plan --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_INPUTS_OPTIMIZERINPUTS_H
#define ACCEL_TOOLS_DRIVER_INPUTS_OPTIMIZERINPUTS_H

#include "tools/driver/Inputs/PlanInputs.h"

namespace accel {

/// Makes the job's optimizer what transformers calls `named`; its rate and
/// decay stay where the script gives them.
void setOptimizer(const std::string &transformers, JobConfig &job,
                  const plan::TransformersOptimizer &named);

/// Applies --optim to the job, and reports what its executor cannot do with the
/// optimizer.
void chooseOptimizer(const PlanOptions &options, PlanInputs &inputs,
                     DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_INPUTS_OPTIMIZERINPUTS_H
