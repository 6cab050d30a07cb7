//===- Differentiate.h - Joint functions for a graph ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_DIFFERENTIATE_DIFFERENTIATE_H
#define ACCEL_PASSES_DIFFERENTIATE_DIFFERENTIATE_H

#include "mlir/IR/BuiltinOps.h"

namespace accel {

/// Makes `@F.joint` of each segment function that the graph calls and whose
/// gradients the loss needs. Only what depends on a trainable parameter and
/// leads to the loss gets a gradient. Calls of one function that need different
/// gradients call variants of it (`@F.v1`, ...) afterwards. Without a graph,
/// every function gets the gradients of all its floating-point arguments.
mlir::LogicalResult differentiate(mlir::ModuleOp module);

/// Whether calls of `function` may be calls of `name` after differentiation:
/// it is the function or a variant of it.
bool isVariantOf(llvm::StringRef name, llvm::StringRef function);

} // namespace accel

#endif // ACCEL_PASSES_DIFFERENTIATE_DIFFERENTIATE_H
