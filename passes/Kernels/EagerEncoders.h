//===- EagerEncoders.h - Encoders as transformers computes them -*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_KERNELS_EAGERENCODERS_H
#define ACCEL_PASSES_KERNELS_EAGERENCODERS_H

#include "dialects/Aten/Aten.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace accel::eager {

/// Part of toEagerForm (EagerForm.h): rows that are looked up by position,
/// copies in the order of heads, biases of scores that each layer fills,
/// attention with a trained bias by single matmuls in fp32 if `cpu`, else as an
/// operation whose kernel is selected, losses in the type of the logits.
mlir::LogicalResult encodersToEagerForm(mlir::ModuleOp module, bool cpu);

/// Infers again what follows from `values` of `function`, whose types have
/// changed.
mlir::LogicalResult inferUsers(mlir::func::FuncOp function,
                               mlir::ArrayRef<mlir::Value> values);

/// The function's type after its arguments or results have changed.
void updateType(mlir::func::FuncOp function);

/// [S, S] of truth values: a key comes after its query.
mlir::Value laterKeys(mlir::OpBuilder &b, mlir::Location loc, int64_t size);

template <typename OpT, typename... Args>
mlir::Value make(mlir::OpBuilder &b, mlir::Location loc, Args &&...args) {
  return OpT::create(b, loc, std::forward<Args>(args)...)->getResult(0);
}

} // namespace accel::eager

#endif // ACCEL_PASSES_KERNELS_EAGERENCODERS_H
