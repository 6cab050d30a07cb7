//===- AssignMemory.h - Where activations are freed -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The plain rewrite behind `assign-memory`: every value is given up at its
// last use, inside the call that reads it last where that call can drop it
// (Step::consumed), else by a Free step right after. Values that nothing reads
// are freed after the step that makes them. Existing value frees are replaced.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_MEMORY_ASSIGNMEMORY_H
#define ACCEL_PASSES_MEMORY_ASSIGNMEMORY_H

#include "runtime/plan/Plan.h"

namespace accel::schedule {

void assignMemory(const plan::Plan &plan, plan::Program &program);

} // namespace accel::schedule

#endif // ACCEL_PASSES_MEMORY_ASSIGNMEMORY_H
