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

/// Makes a plan's functions from the module's as they are asked for. A
/// backward function exists once for each set of destination dtypes and of
/// gradients that it adds to instead of writing; the name tells what differs
/// from writing f32: "L.backward", "L.backward@bf16+0,2".
class FunctionTable {
public:
  FunctionTable(mlir::ModuleOp module, plan::Plan &plan);

  /// Index in Plan::functions, or -1 after an error was emitted.
  int get(const std::string &symbol,
          const std::vector<GradientSpec> &gradients);
  /// The same by the name that `get` gave it.
  int getByName(const std::string &name);

private:
  mlir::ModuleOp module;
  plan::Plan &plan;
  llvm::StringMap<mlir::func::FuncOp> symbols;
  llvm::StringMap<int> known;
};

/// Fills `plan` from a module whose decisions are taken and whose functions
/// are partitioned: skeleton, functions, and programs in which nothing
/// overlaps yet.
mlir::LogicalResult lowerPrograms(mlir::ModuleOp module, plan::Plan &plan);

} // namespace accel::schedule

#endif // ACCEL_PASSES_SCHEDULE_LOWERPROGRAMS_H
