//===- ApplyPrecision.h - Retype segment functions --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_PRECISION_APPLYPRECISION_H
#define ACCEL_PASSES_PRECISION_APPLYPRECISION_H

#include "dialects/Sharding/Sharding.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel {

/// Gives the floating-point arguments of `function` (parameters and inputs)
/// the element type `compute`, or that of `own` where it has one for the
/// argument, and infers every result type again, in order.
/// `type_as` becomes `_to_copy`, unless autocast decides what the other is
/// (autocastType); casts that change nothing disappear. Fails
/// with a diagnostic where an operator cannot take the new types.
mlir::LogicalResult applyPrecision(mlir::func::FuncOp function,
                                   mlir::Type compute,
                                   llvm::ArrayRef<mlir::Type> own = {});

/// Gives the calls of `graph` the result types that their callees have now.
/// Fails where an operand does not fit its callee.
mlir::LogicalResult retypeCalls(sharding::GraphOp graph);

} // namespace accel

#endif // ACCEL_PASSES_PRECISION_APPLYPRECISION_H
