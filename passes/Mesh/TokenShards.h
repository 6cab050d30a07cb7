//===- TokenShards.h - Which ranks have which tokens ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_MESH_TOKENSHARDS_H
#define ACCEL_PASSES_MESH_TOKENSHARDS_H

#include "passes/Mesh/ValueShardings.h"

namespace accel::mesh {

/// How the tokens of activations are shared. Under context parallelism a rank
/// has its tokens everywhere: for ring attention a part from the start of a
/// sequence and one as far from its end, for an exchange of heads consecutive
/// ones. Under sequence parallelism it has them between calls, where norms and
/// what is added work on those alone.
class TokenShards {
public:
  /// An axis that is empty, or of one rank, shards nothing. The context comes
  /// first: attention has its tokens, which tensor parallelism gathers. Of
  /// `ringAxis` and `headsAxis` one has ranks.
  TokenShards(sharding::MeshOp mesh, llvm::StringRef ringAxis,
              llvm::StringRef headsAxis, llvm::StringRef sequenceAxis,
              int64_t sequenceLength);

  /// Emits an error where an axis does not divide the sequence.
  mlir::LogicalResult verify();

  /// Adds to `state`, what a function gives of `value`, how callers have it:
  /// activations [batch, tokens, features], and under context parallelism
  /// tables of positions [tokens, features].
  void shard(mlir::Value value, ValueSharding &state) const;

  /// Some axis shards tokens.
  bool any() const { return !context.empty() || !sequence.empty(); }
  /// The axis of context parallelism; empty without it.
  llvm::StringRef contextAxis() const { return context; }

private:
  sharding::MeshOp mesh;
  llvm::StringRef context, sequence;
  /// The rank's tokens of the context lie in that many pieces.
  int64_t contextPieces;
  int64_t sequenceLength;
};

} // namespace accel::mesh

#endif // ACCEL_PASSES_MESH_TOKENSHARDS_H
