//===- Pipeline.h - The pipeline that a graph is cut for --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_SHARDING_PIPELINE_H
#define ACCEL_DIALECTS_SHARDING_PIPELINE_H

#include "dialects/Sharding/Sharding.h"
#include "runtime/plan/Chunks.h"

namespace accel::sharding {

/// On the graph of a pipeline whose stages run the forwards of all
/// micro-batches before the first backward (gpipe): a unit attribute.
constexpr llvm::StringLiteral forwardsFirstAttr = "sharding.forwards_first";

/// As a plan names it.
inline std::string scheduleOf(GraphOp graph) {
  return plan::scheduleOf(graph && graph->hasAttr(splitBackwardAttr),
                          chunksOf(graph),
                          graph && graph->hasAttr(forwardsFirstAttr));
}

inline plan::ChunkLayout chunkLayoutOf(GraphOp graph, int64_t stages) {
  return {static_cast<int>(stages), static_cast<int>(chunksOf(graph)),
          scheduleOf(graph)};
}

} // namespace accel::sharding

#endif // ACCEL_DIALECTS_SHARDING_PIPELINE_H
