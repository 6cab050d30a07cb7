//===- Reductions.h - Which reductions a backward waits for -----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// accel-run reduces a unit's gradients beside the next unit's backward, where
// the unsharded gradient and what other ranks send are memory beside that
// backward's. Waiting saves the bytes and costs what the overlap gains; from
// the first reduction of a backward on, since most is saved there.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_SESSION_REDUCTIONS_H
#define ACCEL_TOOLS_DRIVER_SESSION_REDUCTIONS_H

#include "passes/FrameworkSteps/StepEvaluator.h"

#include <string>

namespace accel {

struct ReductionChoice {
  int64_t await = 0; // reductions of a backward, from its first
  std::string why;   // with the predicted figures; empty without a choice
};

/// By predicted time and memory. Where it is known what a rank may use of its
/// device (`budgetBytes`) and it is enough, the fastest: none. Where it is not
/// enough, the fastest that fits. Where it is not known, the least memory of
/// those that take as long within what is predicted of a difference.
ReductionChoice chooseReductions(const DecidedStep &step, const Target &target,
                                 std::optional<int64_t> budgetBytes);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_SESSION_REDUCTIONS_H
