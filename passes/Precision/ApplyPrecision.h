//===- ApplyPrecision.h - Retype segment functions --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_PRECISION_APPLYPRECISION_H
#define ACCEL_PASSES_PRECISION_APPLYPRECISION_H

#include "dialects/Sharding/Sharding.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <memory>

namespace mlir {
class Pass;
}

namespace accel {

/// Gives the floating-point arguments of `function` (parameters and inputs)
/// the element type `compute` and infers every result type again, in order.
/// `type_as` becomes `_to_copy`; casts that change nothing disappear. Fails
/// with a diagnostic where an operator cannot take the new types.
mlir::LogicalResult applyPrecision(mlir::func::FuncOp function,
                                   mlir::Type compute);

/// Gives the calls of `graph` the result types that their callees have now.
/// Fails where an operand does not fit its callee.
mlir::LogicalResult retypeCalls(sharding::GraphOp graph);

/// `apply-precision`: the above for each function that the graph calls, with
/// the compute dtype of the units that its parameters are in (without
/// parameters, of the first unit); `compute=f32|bf16|f16` overrides it.
std::unique_ptr<mlir::Pass> createApplyPrecisionPass();
void registerApplyPrecisionPass();

} // namespace accel

#endif // ACCEL_PASSES_PRECISION_APPLYPRECISION_H
