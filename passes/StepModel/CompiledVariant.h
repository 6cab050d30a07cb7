//===- CompiledVariant.h - A segment under torch.compile --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_STEPMODEL_COMPILEDVARIANT_H
#define ACCEL_PASSES_STEPMODEL_COMPILEDVARIANT_H

#include "passes/StepModel/SegmentGraph.h"

namespace accel {

/// Measures a segment that is one region of torch.compile with Inductor: what
/// the forward saves is the partitioner's cut (CompiledCut.h); values inside of
/// a fused kernel take no memory; the backward frees a saved value with its
/// last reader and returns all of the parameters' gradients when it ends.
/// `graph` is not in autograd's form. Of EagerMode::Full the checkpoint is
/// inside of the region: its inputs are saved, and what the backward needs it
/// repeats.
SegmentVariant measureCompiled(const SegmentGraph &graph, EagerMode mode,
                               const Target *target);

} // namespace accel

#endif // ACCEL_PASSES_STEPMODEL_COMPILEDVARIANT_H
