//===- FunctionVariants.h - Functions by where gradients go -----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_SCHEDULE_FUNCTIONVARIANTS_H
#define ACCEL_PASSES_SCHEDULE_FUNCTIONVARIANTS_H

#include "passes/Export/ExportFunction.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace accel::schedule {

/// The functions that the programs of a module call. A backward function
/// exists once for each set of destination dtypes and of gradients that it adds
/// to instead of writing (`schedule.destination` of its results); the name
/// tells what differs from writing f32: "L.backward", "L.backward@bf16+0,2".
class FunctionVariants {
public:
  explicit FunctionVariants(mlir::ModuleOp module);

  /// The function `symbol` with these gradients, made when it is first asked
  /// for; null after an error was emitted.
  mlir::func::FuncOp get(llvm::StringRef symbol,
                         llvm::ArrayRef<GradientMode> gradients);
  /// Erases the functions of which only variants were asked for.
  void eraseUnused();

private:
  mlir::ModuleOp module;
  llvm::StringMap<mlir::func::FuncOp> symbols;
  llvm::MapVector<mlir::func::FuncOp, bool> used; // itself, by original
};

} // namespace accel::schedule

#endif // ACCEL_PASSES_SCHEDULE_FUNCTIONVARIANTS_H
