//===- SortRows.h - Rows that came, sorted by expert again ------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_MESH_SORTROWS_H
#define ACCEL_PASSES_MESH_SORTROWS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel {

/// Puts into a function whose rows are exchanged what transformers' modules do
/// with them (AllToAllEP of distributed/expert_parallel.py around
/// grouped_mm_experts_forward of integrations/moe.py, 5.23): the experts sort
/// the rows that came as if each were a token of one expert, fill with zeros
/// where a rank has no expert of a row, and multiply by weights of 1; what
/// comes back is put in the order of tokens and then weighted. An error where
/// results are not weighted and put in order once.
llvm::LogicalResult sortRowsAgain(mlir::func::FuncOp function);

} // namespace accel

#endif // ACCEL_PASSES_MESH_SORTROWS_H
