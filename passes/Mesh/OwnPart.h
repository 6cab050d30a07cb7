//===- OwnPart.h - Operators that count or combine along shards -*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Operators that count rows or combine statistics along a sharded dimension,
// written with those that do not. Of a table whose rows are sharded (a
// vocabulary-parallel embedding) a rank looks up what lies in its part and has
// zeros for the rest; of a cross-entropy over sharded classes it has its part
// of the logits, and the ranks exchange the largest, the sum of exponentials
// and the target's logit. A mean over rows divides by the count of all ranks.
// Attention that drops weights draws by the rank's place along the axes that
// shard its heads. Attention on tokens is in ContextAttention.h.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_MESH_OWNPART_H
#define ACCEL_PASSES_MESH_OWNPART_H

#include "dialects/Aten/ShardingRule.h"
#include "dialects/Sharding/Sharding.h"
#include "passes/Mesh/TorchRing.h"

#include <optional>

namespace accel::mesh {

/// Whether `useOwnPart` writes what `op` does about a factor of that form.
bool hasOwnPart(mlir::Operation *op, aten::Form form);

/// The axes, outermost first, that shard the factor of one form.
struct FormAxes {
  aten::Form form;
  llvm::SmallVector<llvm::StringRef> axes;
};

/// Rewrites `op`, whose types are of one rank and of which `forms` are sharded,
/// each of which `hasOwnPart`. Returns what stands for its results; `op` may be
/// gone. With `torchRing`, attention over mirrored tokens is torch's.
llvm::SmallVector<mlir::Value> useOwnPart(mlir::Operation *op,
                                          sharding::MeshOp mesh,
                                          llvm::ArrayRef<FormAxes> forms,
                                          std::optional<Rotation> torchRing);

} // namespace accel::mesh

#endif // ACCEL_PASSES_MESH_OWNPART_H
