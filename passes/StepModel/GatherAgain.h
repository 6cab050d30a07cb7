//===- GatherAgain.h - Gathered inputs that are not kept --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_STEPMODEL_GATHERAGAIN_H
#define ACCEL_PASSES_STEPMODEL_GATHERAGAIN_H

#include "passes/StepModel/SegmentGraph.h"

namespace accel {

/// Under sequence parallelism Megatron's column-parallel layers keep a rank's
/// tokens of their input and gather them again for the weight's gradient
/// (LinearWithGradAccumulationAndAsyncCommunication,
/// megatron/core/tensor_parallel/layers.py; Korthikanti et al.,
/// arXiv:2205.05198, section 4.2.2). What the backward of `graph` reads of a
/// tensor that the forward gathers over `axis` is gathered before its first use
/// there.
void gatherAgain(SegmentGraph &graph, std::string_view axis);

} // namespace accel

#endif // ACCEL_PASSES_STEPMODEL_GATHERAGAIN_H
