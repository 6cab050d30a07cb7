//===- SegmentGradients.h - What a joint's signature says -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FRAMEWORKSTEPS_SEGMENTGRADIENTS_H
#define ACCEL_PASSES_FRAMEWORKSTEPS_SEGMENTGRADIENTS_H

#include "dialects/Aten/Aten.h"
#include "dialects/Sharding/Sharding.h"
#include "passes/StepModel/StepModel.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel {

/// What an argument, or a result, of a joint function stands for.
aten::BindingAttr argBinding(mlir::func::FuncOp function, unsigned i);
aten::BindingAttr resultBinding(mlir::func::FuncOp function, unsigned i);

/// The inputs of the call that get a gradient, and those that others read too.
void noteInputGradients(sharding::CallOp call, mlir::func::FuncOp joint,
                        SegmentKind &kind);

/// Gradients by the parameters of the call, which are in the order of the
/// arguments of `callee`.
void noteParameterGradients(mlir::func::FuncOp callee, mlir::func::FuncOp joint,
                            SegmentKind &kind);

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKSTEPS_SEGMENTGRADIENTS_H
