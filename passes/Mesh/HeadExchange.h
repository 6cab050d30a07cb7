//===- HeadExchange.h - Attention with heads for tokens ---------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Attention of which each rank has consecutive tokens: before it, ranks
// exchange tokens for heads, so that each computes some heads of the whole
// sequence, and behind it heads for tokens (DeepSpeed Ulysses, Jacobs et al.
// 2023, arXiv:2309.14509). Any attention can be computed so, with windows, caps
// and masks. Key heads that are fewer than the ranks are repeated before they
// are sent, and their gradients added up.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_MESH_HEADEXCHANGE_H
#define ACCEL_PASSES_MESH_HEADEXCHANGE_H

#include "dialects/Sharding/Sharding.h"

#include "llvm/ADT/SmallVector.h"

namespace accel::mesh {

/// Whether `op` is an attention, or its backward.
bool isAttention(mlir::Operation *op);

/// Writes `op`, an attention whose types are of one rank and whose tokens
/// `axis` shards, between its exchanges. The ranks divide its query heads.
/// Returns what stands for its results; `op` is gone.
llvm::SmallVector<mlir::Value>
attendByHeads(mlir::Operation *op, sharding::MeshOp mesh, llvm::StringRef axis);

} // namespace accel::mesh

#endif // ACCEL_PASSES_MESH_HEADEXCHANGE_H
