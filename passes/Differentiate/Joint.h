//===- Joint.h - A function and its gradients -------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_DIFFERENTIATE_JOINT_H
#define ACCEL_PASSES_DIFFERENTIATE_JOINT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel {

/// Suffixes of the functions that are derived from a segment function.
constexpr llvm::StringLiteral jointSuffix = ".joint";
constexpr llvm::StringLiteral forwardSuffix = ".forward";
constexpr llvm::StringLiteral backwardSuffix = ".backward";
/// Of a backward that is split (split-backward): its gradients of parameters.
constexpr llvm::StringLiteral weightsSuffix = ".weights";

/// Builds `@F.joint` after `function`: its arguments, then a tangent for each
/// result of which `tangents` is true and a carry for each argument of which
/// `carried` is; it returns the function's results, then the gradients of the
/// inputs and of the parameters of which `wanted` is true, each added to its
/// carry.
/// `aten.binding` says what each is. Gradients come from the operators' rules
/// in reverse order, and are added in the order in which autograd's engine
/// adds them. Each operation of the backward carries the number of its autograd
/// node, one for each forward operation, as metadata of a fused location.
/// Emits an error where an operator has no rule.
llvm::FailureOr<mlir::func::FuncOp> buildJoint(mlir::func::FuncOp function,
                                               llvm::ArrayRef<bool> wanted,
                                               llvm::ArrayRef<bool> tangents,
                                               llvm::ArrayRef<bool> carried);

} // namespace accel

#endif // ACCEL_PASSES_DIFFERENTIATE_JOINT_H
