//===- SinkAwaits.h - sink-awaits -------------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_SCHEDULE_SINKAWAITS_H
#define ACCEL_PASSES_SCHEDULE_SINKAWAITS_H

#include "dialects/Schedule/Schedule.h"

namespace accel::schedule {
/// Moves the await of each reduction, and what its unit does after it, down to
/// where the next reduction needs its buffers, so that one is in flight while
/// the next unit's backward computes. On a hybrid mesh one reduction inside
/// shards and one across replicas are in flight at most. The order of the
/// collectives does not change.
void sinkAwaits(ProgramOp program);
} // namespace accel::schedule

#endif // ACCEL_PASSES_SCHEDULE_SINKAWAITS_H
