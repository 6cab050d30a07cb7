//===- Verify.h - Is this plan safe to run? ---------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_PLAN_VERIFY_H
#define ACCEL_RUNTIME_PLAN_VERIFY_H

#include "runtime/plan/Plan.h"

namespace accel::plan {

/// Every problem of the plan, one sentence each with its place; empty if it
/// can be run: indices in range, shapes and flat layouts consistent, each
/// collective started and awaited exactly once, no use before definition or
/// after free, no double free, nothing left allocated at the end of a step but
/// what the next program expects, peak equal to the timeline's.
std::vector<std::string> verify(const Plan &plan);

} // namespace accel::plan

#endif // ACCEL_RUNTIME_PLAN_VERIFY_H
