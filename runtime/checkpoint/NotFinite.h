//===- NotFinite.h - Values that must not be saved --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_CHECKPOINT_NOTFINITE_H
#define ACCEL_RUNTIME_CHECKPOINT_NOTFINITE_H

#include "runtime/execute/Executor.h"

namespace accel::run {

/// Where a value stands that is not finite.
struct NotFinite {
  int parameter = -1;   // of Plan::parameters; -1: all values are finite
  bool ofState = false; // it is of an optimizer state, not of the weight
};

/// The first one in what this rank has of trained parameters and their states.
/// A loss can be finite where gradients are not, and a plan that neither clips
/// nor leaves steps out computes no norm that would show it. One pass over the
/// memory; of a GPU one number a tensor is read, all at once.
NotFinite findNotFinite(Executor &executor);

} // namespace accel::run

#endif // ACCEL_RUNTIME_CHECKPOINT_NOTFINITE_H
