//===- Overlap.h - Moving starts up and awaits down -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The plain rewrites behind `hoist-gathers` and `sink-awaits`. Both keep each
// step's operands and the order of collectives within a stream, and leave a
// program that `verify` accepts.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_PREFETCH_OVERLAP_H
#define ACCEL_PASSES_PREFETCH_OVERLAP_H

#include "runtime/plan/Plan.h"

namespace accel::schedule {

/// Starts each all-gather where the `forward`-th (after the loss:
/// `backward`-th) gather before it was awaited, so that many units at most are
/// in flight or waiting besides the one in use. A unit that would be freed and
/// gathered again with no computation in between stays gathered.
void hoistGathers(plan::Program &program, int64_t forward, int64_t backward);

/// Awaits each reduction where the next one starts, so that one is in flight
/// while the next unit's backward computes.
void sinkAwaits(plan::Program &program);

} // namespace accel::schedule

#endif // ACCEL_PASSES_PREFETCH_OVERLAP_H
