//===- BuildPlan.h - The plan of a scheduled module -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_EXPORT_BUILDPLAN_H
#define ACCEL_PASSES_EXPORT_BUILDPLAN_H

#include "runtime/plan/Plan.h"

#include "mlir/IR/BuiltinOps.h"

namespace accel {

/// The plan of a module of phase `scheduled`, without predictions.
mlir::LogicalResult buildPlan(mlir::ModuleOp module, plan::Plan &plan);

} // namespace accel

#endif // ACCEL_PASSES_EXPORT_BUILDPLAN_H
