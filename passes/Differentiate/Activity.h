//===- Activity.h - Which gradients are wanted ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_DIFFERENTIATE_ACTIVITY_H
#define ACCEL_PASSES_DIFFERENTIATE_ACTIVITY_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace accel {

bool isFloatTensor(mlir::Value value);

/// Floating-point values of `function` that depend on the arguments of which
/// `wanted` is true, those included.
llvm::DenseSet<mlir::Value> activeValues(mlir::func::FuncOp function,
                                         llvm::ArrayRef<bool> wanted);

/// Per result: whether it depends on a wanted argument.
llvm::SmallVector<bool> activeResults(mlir::func::FuncOp function,
                                      llvm::ArrayRef<bool> wanted);

/// Per argument: whether it is wanted and a result with a tangent depends on
/// it through active values.
llvm::SmallVector<bool> usefulArguments(mlir::func::FuncOp function,
                                        llvm::ArrayRef<bool> wanted,
                                        llvm::ArrayRef<bool> tangents);

} // namespace accel

#endif // ACCEL_PASSES_DIFFERENTIATE_ACTIVITY_H
