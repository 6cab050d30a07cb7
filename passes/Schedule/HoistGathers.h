//===- HoistGathers.h - hoist-gathers ---------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_SCHEDULE_HOISTGATHERS_H
#define ACCEL_PASSES_SCHEDULE_HOISTGATHERS_H

#include "dialects/Schedule/Schedule.h"

namespace accel::schedule {
/// Starts each all-gather that overlaps no computation yet where the
/// `forward`-th (after the loss: `backward`-th) gather before it is awaited,
/// so that at most so many units are in flight or waiting besides the one in
/// use. A unit that would be freed and gathered again with no call in between
/// stays gathered. The order of gathers does not change.
void hoistGathers(ProgramOp program, int64_t forward, int64_t backward);
} // namespace accel::schedule

#endif // ACCEL_PASSES_SCHEDULE_HOISTGATHERS_H
