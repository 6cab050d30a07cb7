//===- TokenShards.cpp - Which ranks have which tokens --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Mesh/TokenShards.h"

using namespace mlir;
using namespace accel;
using namespace accel::mesh;

/// Of ring attention: one from the start and one from the end.
constexpr int64_t ringPieces = 2;

TokenShards::TokenShards(sharding::MeshOp mesh, StringRef ringAxis,
                         StringRef headsAxis, StringRef sequenceAxis,
                         int64_t sequenceLength)
    : mesh(mesh), sequence(mesh.axisSize(sequenceAxis) > 1 ? sequenceAxis : ""),
      contextPieces(1), sequenceLength(sequenceLength) {
  if (mesh.axisSize(ringAxis) > 1) {
    context = ringAxis;
    contextPieces = ringPieces;
  } else if (mesh.axisSize(headsAxis) > 1) {
    context = headsAxis;
  }
}

LogicalResult TokenShards::verify() {
  int64_t parts = 1;
  for (StringRef axis : {context, sequence}) {
    if (axis.empty())
      continue;
    const int64_t ranks = mesh.axisSize(axis);
    parts *= ranks * (axis == context ? contextPieces : 1);
    if (sequenceLength % parts != 0)
      return emitError(mesh.getLoc(), "sequences of ")
             << sequenceLength << " tokens cannot be divided among the "
             << ranks << " ranks of '" << axis << "'; take a multiple of "
             << parts;
  }
  return success();
}

void TokenShards::shard(Value value, ValueSharding &state) const {
  auto type = cast<RankedTensorType>(value.getType());
  const int64_t rank = type.getRank();
  if (!isa<FloatType>(type.getElementType()) || rank < 2 || rank > 3 ||
      type.getDimSize(rank - 2) != sequenceLength)
    return;
  DimSharding &tokens = state.dims[rank - 2];
  auto add = [&](const sharding::ShardedBy &by) {
    if (llvm::any_of(state.dims,
                     [&](const DimSharding &dim) { return dim.uses(by.axis); }))
      return;
    tokens.axes.push_back(by);
    tokens.priority = std::max(tokens.priority, Priority{Priority::Flow, 0});
  };
  if (!context.empty())
    add({context, contextPieces, /*mirrored=*/contextPieces > 1});
  const bool otherwise = llvm::any_of(state.dims, [&](const DimSharding &dim) {
    return &dim != &tokens && !dim.axes.empty();
  });
  if (!sequence.empty() && rank == 3 && !otherwise)
    add({sequence, 1});
}
