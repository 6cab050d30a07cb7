//===- AccelRunVariants.h - Variants as accel-run executes them -*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FRAMEWORKSTEPS_ACCELRUNVARIANTS_H
#define ACCEL_PASSES_FRAMEWORKSTEPS_ACCELRUNVARIANTS_H

#include "dialects/Aten/Aten.h"
#include "passes/Export/ExportFunction.h"
#include "passes/Recompute/SavedSetCache.h"
#include "passes/StepModel/StepModel.h"
#include "passes/Targets/Target.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel {

/// Splits copies of `joint` for each checkpoint mode, and for each of the
/// `solved` ways, as `partition` does and measures the exported functions by
/// plan::profileFunction: exactly what accel-run holds. `gradients`: how each
/// parameter gradient is left.
mlir::LogicalResult addAccelRunVariants(mlir::func::FuncOp joint,
                                        aten::Device device,
                                        const Target *target,
                                        llvm::ArrayRef<GradientMode> gradients,
                                        llvm::ArrayRef<SavedSetPlan> solved,
                                        SegmentKind &kind);

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKSTEPS_ACCELRUNVARIANTS_H
