//===- LowerPrograms.h - From decided IR to plain programs ------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_SCHEDULE_LOWERPROGRAMS_H
#define ACCEL_PASSES_SCHEDULE_LOWERPROGRAMS_H

#include "passes/Schedule/BuildProgram.h"
#include "runtime/plan/Plan.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

namespace accel::schedule {

/// A plan's functions, exported from the module's as they are asked for.
class FunctionTable {
public:
  FunctionTable(mlir::ModuleOp module, plan::Plan &plan);

  /// Index in Plan::functions, or -1 after an error was emitted.
  int get(mlir::func::FuncOp function);
  int getByName(llvm::StringRef name);

private:
  mlir::ModuleOp module;
  plan::Plan &plan;
  llvm::StringMap<mlir::func::FuncOp> symbols;
  llvm::StringMap<int> known;
};

/// Fills `plan` from a module whose decisions are taken and whose functions
/// are partitioned: skeleton, functions, and programs in which nothing
/// overlaps yet. The module gets the variants of backward functions that the
/// programs call.
mlir::LogicalResult lowerPrograms(mlir::ModuleOp module, plan::Plan &plan);

} // namespace accel::schedule

#endif // ACCEL_PASSES_SCHEDULE_LOWERPROGRAMS_H
