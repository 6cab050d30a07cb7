//===- Waits.h - What a backward holds back and waits for -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// accel-run gathers a unit ahead of its backward, and reduces its gradients
// beside the next unit's. What is gathered, the unsharded gradient and what
// other ranks send are memory beside the loss or a backward. To start a gather
// where it is needed, or to wait for a reduction, saves the bytes and costs
// what the overlap gains; from the first of a backward on, since most is saved
// there.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_SESSION_WAITS_H
#define ACCEL_TOOLS_DRIVER_SESSION_WAITS_H

#include "passes/FrameworkSteps/StepEvaluator.h"

#include <string>

namespace accel {

struct WaitChoice {
  int64_t gathers = 0;    // of a backward, from its first, held back
  int64_t reductions = 0; // of a backward, from its first, awaited
  std::string why;        // with the predicted figures; empty without a choice
};

/// What is to be chosen; the rest is as the candidate has it.
struct OpenWaits {
  bool gathers = true, reductions = true;
  bool any() const { return gathers || reductions; }
};

/// By predicted time and memory. Where it is known what a rank may use of its
/// device (`roomBytes`) and it is enough, the fastest: none. Where it is not
/// enough, the fewest that fit, reductions before gathers, which a backward
/// cannot begin without. Where it is not known, the least memory of those that
/// take as long within what is predicted of a difference.
WaitChoice chooseWaits(const DecidedStep &step, const Target &target,
                       std::optional<int64_t> roomBytes, OpenWaits open);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_SESSION_WAITS_H
