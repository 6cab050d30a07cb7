//===- BuildSkeleton.h - What each rank holds, from the IR ------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_EXPORT_BUILDSKELETON_H
#define ACCEL_PASSES_EXPORT_BUILDSKELETON_H

#include "runtime/plan/Plan.h"

#include "mlir/IR/BuiltinOps.h"

namespace accel::sharding {
class DiskAttr;
} // namespace accel::sharding

namespace accel {

/// Fills everything of `plan` but functions, programs and predictions from the
/// sharding ops of a module whose decisions are taken: job, mesh, parameters
/// with their place in the flat buffers, units, decisions. Emits an error and
/// fails where a decision is missing.
mlir::LogicalResult buildSkeleton(mlir::ModuleOp module, plan::Plan &plan);

/// What the job's offload says of a drive; no folder without one.
plan::Disk toDisk(sharding::DiskAttr disk);

/// The plan's dtype of a floating-point or integer type.
std::optional<plan::DType> toDType(mlir::Type type);

} // namespace accel

#endif // ACCEL_PASSES_EXPORT_BUILDSKELETON_H
