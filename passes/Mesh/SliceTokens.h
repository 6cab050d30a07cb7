//===- SliceTokens.h - Parts of tokens for experts --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_MESH_SLICETOKENS_H
#define ACCEL_PASSES_MESH_SLICETOKENS_H

#include "dialects/Sharding/Sharding.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel {

/// Lets the experts of a function work on a part of the tokens of the samples
/// that the ranks of `axis` share, and gathers what they make of them
/// (AllToAllEP of distributed/expert_parallel.py of transformers 5.23, where
/// tp_mesh has several ranks): the hidden states, the chosen experts and their
/// weights are sliced before rows are sorted by expert, the sum over a token's
/// experts is gathered. An error where the ranks do not divide the tokens, or
/// where experts are called otherwise.
llvm::LogicalResult sliceTokens(mlir::func::FuncOp function,
                                sharding::MeshOp mesh, llvm::StringRef axis);

} // namespace accel

#endif // ACCEL_PASSES_MESH_SLICETOKENS_H
