//===- Passes.td - Every pass of accel-opt -----------------*- tablegen -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_PASSES_TD
#define ACCEL_PASSES_PASSES_TD

include "passes/DecidePasses.td"
include "passes/ApplyPasses.td"
include "passes/SchedulePasses.td"
include "passes/MeshPasses.td"

#endif // ACCEL_PASSES_PASSES_TD
