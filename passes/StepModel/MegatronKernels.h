//===- MegatronKernels.h - What Megatron launches of a mixture --*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A mixture of experts launches many small kernels, and reads row counts on the
// host, which then has nothing queued: with few tokens a rank the host decides.
// Counts are those of the sources, beside which they stand.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_STEPMODEL_MEGATRONKERNELS_H
#define ACCEL_PASSES_STEPMODEL_MEGATRONKERNELS_H

#include "passes/StepModel/MegatronExperts.h"
#include "passes/Targets/LinearOperands.h"
#include "runtime/plan/MegatronModules.h"

namespace accel {

/// How the host drives the layers.
struct MegatronHost {
  plan::GraphedParts graphs;
  LinearOperands operands = LinearOperands::Computed;
};

/// Sets SegmentGraph::host of a layer with Megatron's mixture, and of any layer
/// of which graphs have parts.
void countMegatronKernels(SegmentGraph &graph, const ExpertRanks &experts,
                          const MegatronHost &host);

} // namespace accel

#endif // ACCEL_PASSES_STEPMODEL_MEGATRONKERNELS_H
