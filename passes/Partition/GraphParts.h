//===- GraphParts.h - A segment function in parts ---------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_PARTITION_GRAPHPARTS_H
#define ACCEL_PASSES_PARTITION_GRAPHPARTS_H

#include "dialects/Sharding/Sharding.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

#include <vector>

namespace accel {

/// The path of an element of a ModuleList: it ends in a number.
bool isRepeated(llvm::StringRef path);

/// Which operators of a segment function read its parameters, as PyTorch's
/// graphs have them: a cast, a transposition or another view of a parameter
/// alone belongs to the operator that reads it.
class ParameterReads {
public:
  explicit ParameterReads(mlir::func::FuncOp function);

  /// Names of the parameters that `op` is there to read.
  llvm::ArrayRef<llvm::StringRef> of(mlir::Operation *op) const;
  /// Of the whole function.
  llvm::ArrayRef<llvm::StringRef> all() const { return names; }
  /// Operations in order that have a place: all but views and what computes on
  /// parameters alone, which each part that reads them makes for itself.
  llvm::ArrayRef<mlir::Operation *> placed() const { return order; }
  /// `op` casts an operand for `next` alone: one operator under autocast.
  bool belongsTo(mlir::Operation *op, mlir::Operation *next) const;

private:
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<llvm::StringRef>> reads;
  llvm::SmallVector<mlir::Operation *> order;
  llvm::SmallVector<llvm::StringRef> names;
};

/// A function of some of the operators of a segment, with the values of the
/// segment function that it takes and makes.
struct GraphPart {
  mlir::func::FuncOp function;
  llvm::SmallVector<mlir::Value> inputs, outputs;
};

/// Makes a function `@F.cutN.K` of the operators from each start up to the next
/// one. `function` stays as it is.
std::vector<GraphPart>
cutFunction(mlir::func::FuncOp function,
            const llvm::DenseSet<mlir::Operation *> &starts,
            mlir::SymbolTable &symbols);

/// Replaces `call`, of the function that `parts` are of, by calls of them.
void callParts(sharding::CallOp call, llvm::ArrayRef<GraphPart> parts);

} // namespace accel

#endif // ACCEL_PASSES_PARTITION_GRAPHPARTS_H
