//===- FunctionTime.h - How long a function takes ---------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_COST_FUNCTIONTIME_H
#define ACCEL_PASSES_COST_FUNCTIONTIME_H

#include "passes/Targets/Target.h"
#include "runtime/plan/Exchanges.h"
#include "runtime/plan/Mesh.h"

namespace accel {

/// Seconds of one function, alone on the machine.
struct FunctionTime {
  double computeSeconds = 0;  // of its operators
  double exchangeSeconds = 0; // beside those: what ranks exchange is waited for
};

/// Plays the function over the computation and one wire. What ranks exchange is
/// over where it stands or, where it is started, at its await: until then
/// operators run beside it, but for the part of it that the target cannot hide.
FunctionTime functionTime(const plan::Function &function,
                          const plan::Mesh &mesh, int64_t ranksPerNode,
                          const Target &target);

} // namespace accel

#endif // ACCEL_PASSES_COST_FUNCTIONTIME_H
