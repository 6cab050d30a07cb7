//===- RewriteFunction.h - A segment with its adapters ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_ADAPTERS_REWRITEFUNCTION_H
#define ACCEL_PASSES_ADAPTERS_REWRITEFUNCTION_H

#include "passes/Adapters/AdaptedTree.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel {

/// What becomes of one argument of a segment function.
struct ArgumentEdit {
  std::string name;  // relative, of a parameter; empty: an input
  std::string owner; // relative path of its module, which it has a LoRA of
  std::optional<AdaptedTree::Lora> lora;
  /// What calls may differ in, as a text.
  std::string key() const;
};

/// Renames the parameters of `function`, adds the arguments
/// `OWNER.lora_A.default.weight` and B behind those of their layer, and
/// the low-rank matmul behind each matmul with a weight, or in `functions`
/// together with it: `computed` takes the owners of those. Emits an error where
/// a weight is used otherwise.
mlir::LogicalResult rewriteFunction(mlir::func::FuncOp function,
                                    llvm::ArrayRef<ArgumentEdit> edits,
                                    const AdapterConfig::Functions &functions,
                                    std::vector<std::string> &computed);

/// Every name location of `op` and what is in it, below base_model.model.
void prefixLocations(mlir::Operation *op);

} // namespace accel

#endif // ACCEL_PASSES_ADAPTERS_REWRITEFUNCTION_H
