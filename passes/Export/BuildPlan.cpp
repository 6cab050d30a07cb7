//===- BuildPlan.cpp - The plan of a scheduled module ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Export/BuildPlan.h"

#include "passes/Schedule/ProgramPass.h"

mlir::LogicalResult accel::buildPlan(mlir::ModuleOp module, plan::Plan &plan) {
  return schedule::readPrograms(module, plan);
}
