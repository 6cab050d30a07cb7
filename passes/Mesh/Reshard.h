//===- Reshard.h - From one sharding of a value to another ------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_MESH_RESHARD_H
#define ACCEL_PASSES_MESH_RESHARD_H

#include "passes/Mesh/ValueShardings.h"

#include "mlir/IR/Builders.h"

namespace accel::mesh {

/// Makes of `value`, each rank's part as `from` says, the part that `to` says:
/// sums first (scattered where `to` shards the sum), then dimensions that come
/// together or change places, then slices. Where `to` is a sum and `from` is
/// not, the first rank alone has it. Returns `value` where nothing differs.
mlir::Value reshard(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value,
                    ValueSharding from, const ValueSharding &to,
                    AxisSizes sizes);

} // namespace accel::mesh

#endif // ACCEL_PASSES_MESH_RESHARD_H
