//===- ExtractGraph.h - Segment calls from the IR ---------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_SCHEDULE_EXTRACTGRAPH_H
#define ACCEL_PASSES_SCHEDULE_EXTRACTGRAPH_H

#include "passes/Schedule/Graph.h"

#include "mlir/IR/BuiltinOps.h"

namespace accel::schedule {

/// Reads the module's `sharding.graph` and the forward and backward functions
/// that partition made of its callees (`aten.binding` says what each argument
/// and result is); parameters are bound to those of `plan`. Emits an error and
/// fails where a function or parameter is missing.
mlir::LogicalResult extractGraph(mlir::ModuleOp module, const plan::Plan &plan,
                                 Graph &graph);

} // namespace accel::schedule

#endif // ACCEL_PASSES_SCHEDULE_EXTRACTGRAPH_H
