//===- RunMeshes.h - Meshes that accel-run trains on ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The meshes of accel-run: each is the job with its lines changed, read and
// planned as `plan` does, so that what is refused is refused there and what is
// promised is what a plan of the lines says.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_ADVICE_RUNMESHES_H
#define ACCEL_TOOLS_DRIVER_ADVICE_RUNMESHES_H

#include "tools/driver/Advice/Advice.h"

namespace accel {

/// Whether --tune plans other meshes of the job. `all`: written sizes may
/// change.
bool planRunMeshes(const AdviceInputs &in, bool all);

/// The meshes of the job's ranks that keep the samples of a step, as planned;
/// `configured` is the job as it is.
RunMeshes runMeshes(const AdviceInputs &in, const Candidate &base,
                    const StepPrediction &configured, int64_t budgetBytes);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_ADVICE_RUNMESHES_H
