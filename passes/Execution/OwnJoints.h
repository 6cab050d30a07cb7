//===- OwnJoints.h - Joint functions that accel-run computes ----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_EXECUTION_OWNJOINTS_H
#define ACCEL_PASSES_EXECUTION_OWNJOINTS_H

#include "passes/Differentiate/Joint.h"
#include "passes/Frameworks/JobFramework.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace accel {

/// The joint functions of `module`; none where an eager framework runs it.
inline llvm::SmallVector<mlir::func::FuncOp> ownJoints(mlir::ModuleOp module) {
  llvm::SmallVector<mlir::func::FuncOp> joints;
  if (!frameworkOf(module).eager())
    for (auto function : module.getOps<mlir::func::FuncOp>())
      if (function.getName().ends_with(jointSuffix))
        joints.push_back(function);
  return joints;
}

} // namespace accel

#endif // ACCEL_PASSES_EXECUTION_OWNJOINTS_H
