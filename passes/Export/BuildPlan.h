//===- BuildPlan.h - From a scheduled module to its plan --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_EXPORT_BUILDPLAN_H
#define ACCEL_PASSES_EXPORT_BUILDPLAN_H

#include "runtime/plan/Plan.h"

#include "mlir/IR/BuiltinOps.h"

namespace accel {

/// The one translation of a module of phase `scheduled` to its plan: what each
/// rank holds, the functions that its programs call, in the order of the calls,
/// and the programs. Their peaks are those that the module records; nothing
/// else is predicted. Emits an error and fails where a call and its function do
/// not fit together.
mlir::LogicalResult buildPlan(mlir::ModuleOp module, plan::Plan &plan);

} // namespace accel

#endif // ACCEL_PASSES_EXPORT_BUILDPLAN_H
