//===- TorchRing.h - Attention as context_parallel does it ------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// torch's ring attention (_templated_ring_attention and its backward, of
// torch/distributed/tensor/experimental/_context_parallel/_attention.py, 2.15)
// with its round-robin balance: what Accelerate's cp_size runs. It is there to
// be counted: operators of the last rank, whose blocks all have the whole of
// its queries and half of the other rank's keys; other ranks have at most as
// many bytes, as much work and the same exchanges. Keys are gathered at once
// (cp_comm_strategy allgather) or sent from neighbour to neighbour (alltoall);
// their gradients always are.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_MESH_TORCHRING_H
#define ACCEL_PASSES_MESH_TORCHRING_H

#include "dialects/Sharding/Sharding.h"

#include "llvm/ADT/SmallVector.h"

namespace accel::mesh {

/// How torch's ring attention gets keys and values (`_RotateMethod`).
enum class Rotation { AllGather, AllToAll };

/// Writes `op`, an isContextAttention whose types are of one rank, as torch
/// does. Returns what stands for its results; `op` is gone.
llvm::SmallVector<mlir::Value> attendAsTorch(mlir::Operation *op,
                                             sharding::MeshOp mesh,
                                             llvm::StringRef axis,
                                             Rotation rotation);

} // namespace accel::mesh

#endif // ACCEL_PASSES_MESH_TORCHRING_H
