//===- ContextAttention.h - Attention on shards of tokens -------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Causal attention of which each rank has its tokens' queries, keys and values:
// one part from the start of the sequence and one as far from its end
// (`[2 mirrored, axis]`), so that every rank has as many scores to compute.
//
// A rank attends to its own keys, which are causal among themselves, and to two
// blocks of each other rank's without a mask: its later queries to that rank's
// earlier keys, which all of them see, and whichever queries come behind the
// keys that are left. Keys and values are sent straight from the rank that has
// them. Outputs are joined by their log-sum-exp in fp32; the backward computes
// each block with the joined output and log-sum-exp, as ring attention does
// (Liu et al. 2023, arXiv:2310.01889), and sends gradients of keys back.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_MESH_CONTEXTATTENTION_H
#define ACCEL_PASSES_MESH_CONTEXTATTENTION_H

#include "dialects/Sharding/Sharding.h"

#include "llvm/ADT/SmallVector.h"

namespace accel::mesh {

/// Whether `op` is an attention, or its backward, that can be written so.
bool isContextAttention(mlir::Operation *op);

/// Writes `op`, whose types are of one rank and whose tokens `axis` shards, as
/// its blocks. Returns what stands for its results; `op` is gone.
llvm::SmallVector<mlir::Value> attendInContext(mlir::Operation *op,
                                               sharding::MeshOp mesh,
                                               llvm::StringRef axis);

} // namespace accel::mesh

#endif // ACCEL_PASSES_MESH_CONTEXTATTENTION_H
