//===- MeshInputs.h - Jobs with axes inside of functions --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_INPUTS_MESHINPUTS_H
#define ACCEL_TOOLS_DRIVER_INPUTS_MESHINPUTS_H

#include "frontends/ModuleTree/ModuleTree.h"
#include "tools/driver/Inputs/PlanInputs.h"

namespace accel {

/// Names, sizes and layers of the job's model, without a report: it was read
/// already. Nothing of a program of torch.export.
std::optional<ModuleTree> moduleTreeOf(const PlanInputs &inputs,
                                       const PlanOptions &options);

/// Refuses what is not planned of tensor and context parallelism, by name.
/// Sizes that do not divide a parameter are import-tp-plan's errors, and those
/// that do not divide a sequence propagate-sharding's.
void checkInnerAxes(const PlanInputs &inputs, const PlanOptions &options,
                    DiagnosticEngine &engine);

/// Who shares a layer's experts: transformers' ep_size counts tp_size too.
int64_t ranksOfExperts(const JobConfig &job);

/// What lint says of whether accelerate's ranks run with the mesh of their
/// file.
void reportMesh(const PlanInputs &inputs, const PlanOptions &options,
                DiagnosticEngine &engine);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_INPUTS_MESHINPUTS_H
