//===- FusedSeconds.h - Seconds of a segment, fused or not ------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_STEPMODEL_FUSEDSECONDS_H
#define ACCEL_PASSES_STEPMODEL_FUSEDSECONDS_H

#include "passes/StepModel/SegmentGraph.h"

namespace accel {

/// Seconds that whoever reads the result of instruction `i` waits for what
/// ranks exchange. `again`: in a forward that is repeated.
double waitSeconds(const SegmentGraph &graph, EagerMode mode, int i, bool again,
                   const Target &target);

/// Seconds of instruction `i`, operator by operator, with those that it waits;
/// these are added to `exchanged` too.
double eagerSeconds(const SegmentGraph &graph, EagerMode mode, int i,
                    bool again, const Target &target, double &exchanged);

/// Adds the variant's seconds under torch.compile, which fuses the forward and
/// the backward each by itself. `kept`: instructions that are not repeated;
/// `last` is the last one that is.
void addFusedSeconds(const SegmentGraph &graph, EagerMode mode,
                     const std::vector<bool> &kept, int last,
                     const Target &target, SegmentVariant &variant);

} // namespace accel

#endif // ACCEL_PASSES_STEPMODEL_FUSEDSECONDS_H
