//===- ProgramPass.h - Passes over programs as plain structs ----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_SCHEDULE_PROGRAMPASS_H
#define ACCEL_PASSES_SCHEDULE_PROGRAMPASS_H

#include "runtime/plan/Plan.h"

#include "mlir/IR/BuiltinOps.h"

namespace accel::schedule {

/// Predicts the plan's memory and appends one schedule.program per program.
mlir::LogicalResult printPrograms(mlir::ModuleOp module, plan::Plan &plan);

/// Fills `plan` (skeleton, functions, programs, step, eval) from a module of
/// phase `scheduled`.
mlir::LogicalResult readPrograms(mlir::ModuleOp module, plan::Plan &plan);

} // namespace accel::schedule

#endif // ACCEL_PASSES_SCHEDULE_PROGRAMPASS_H
