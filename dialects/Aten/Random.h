//===- Random.h - Operators that draw numbers -------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_RANDOM_H
#define ACCEL_DIALECTS_ATEN_RANDOM_H

#include "dialects/Aten/Aten.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel::aten {

/// Attribute of a function that draws: the function that evaluation calls
/// instead, the same without it.
constexpr llvm::StringLiteral evalAttr = "aten.eval";

/// The key by which `op` draws its numbers; nothing where it draws none.
std::optional<int64_t> randomKey(mlir::Operation *op);

/// Fails with a diagnostic where two operations of `function`, which has no
/// gradients yet, draw by the same key.
mlir::LogicalResult verifyKeys(mlir::func::FuncOp function);

/// Makes `function` what it is in evaluation: dropout passes its input on.
void removeRandom(mlir::func::FuncOp function);

} // namespace accel::aten

#endif // ACCEL_DIALECTS_ATEN_RANDOM_H
