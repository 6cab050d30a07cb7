//===- EmitDot.h - Units and schedule as a graph ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_EMIT_EMITDOT_H
#define ACCEL_TOOLS_DRIVER_EMIT_EMITDOT_H

#include "runtime/plan/Plan.h"

#include <string>

namespace accel {

/// A plan's units, and each of its programs, in Graphviz's language: a program
/// is a cluster with a row for each stream, instructions in their order there,
/// and dashed edges from what a stream waits for. Allocations, frees and awaits
/// are no nodes.
std::string dotText(const plan::Plan &plan);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_EMIT_EMITDOT_H
