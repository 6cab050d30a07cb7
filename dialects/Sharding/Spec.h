//===- Spec.h - Parts of a sharded dimension --------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_SHARDING_SPEC_H
#define ACCEL_DIALECTS_SHARDING_SPEC_H

#include "dialects/Sharding/Sharding.h"

#include <string>

namespace accel::sharding {

/// One axis of a sharded dimension. Each block that the axes before it left to
/// a rank is `pieces` pieces, of each of which a rank has its part; with one
/// piece everywhere a rank has consecutive elements. Of `mirrored` pieces, an
/// even number, every second one is shared in the reverse order of the ranks:
/// of two, rank i has the i-th part from the start and the i-th from the end.
struct ShardedBy {
  llvm::StringRef axis;
  int64_t pieces = 1;
  bool mirrored = false;

  bool operator==(const ShardedBy &) const = default;
};

/// Of dimension `dim`, outermost first.
llvm::SmallVector<ShardedBy, 1> shardedBy(SpecAttr spec, int64_t dim);

/// `axis` shards dimension `dim`; false without a spec or such a dimension.
bool isShardedBy(SpecAttr spec, int64_t dim, llvm::StringRef axis);

/// The first of a list of axes, and all of them in words ("ep x tp").
llvm::StringRef firstAxis(mlir::ArrayAttr axes);
std::string axisNames(mlir::ArrayAttr axes);

/// The list of a dimension as SpecAttr holds it: names, and before a name the
/// number of its pieces where there are several, with a unit attribute behind
/// it where they are mirrored.
mlir::ArrayAttr dimOf(mlir::MLIRContext *context,
                      llvm::ArrayRef<ShardedBy> parts);

} // namespace accel::sharding

#endif // ACCEL_DIALECTS_SHARDING_SPEC_H
