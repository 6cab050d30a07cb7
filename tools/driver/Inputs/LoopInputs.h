//===- LoopInputs.h - What the training loop of a plan does -----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_INPUTS_LOOPINPUTS_H
#define ACCEL_TOOLS_DRIVER_INPUTS_LOOPINPUTS_H

#include "tools/driver/Inputs/PlanInputs.h"

namespace accel {

/// A path that does not depend on the folder that accel-opt runs in; an empty
/// one stays.
std::string absolutePath(const std::string &path);

/// Samples hold several documents, of the job's data or of its evaluation's.
bool hasDocuments(const JobConfig &job);

/// Evaluations return what the model would have said, which metrics, files and
/// samples are made of.
bool wantsPredictions(const JobConfig &job);

/// Reports what of documents, metrics and samples the model cannot do.
void checkLoop(const PlanInputs &inputs, DiagnosticEngine &engine);

/// Optimizer steps, data, evaluations and checkpoints as the plan has them.
void fillLoop(const JobConfig &job, plan::Job &training);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_INPUTS_LOOPINPUTS_H
