//===- Reshard.h - What is freed after the forward --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_RESHARD_RESHARD_H
#define ACCEL_PASSES_RESHARD_RESHARD_H

#include <memory>

namespace mlir {
class Pass;
}

namespace accel {
/// `reshard`: decides for each unit whether its gathered parameters are freed
/// after the forward (request "reshard" {after_forward = true|false, keep =
/// [units that stay gathered all the same]}).
std::unique_ptr<mlir::Pass> createReshardPass();
} // namespace accel

#endif // ACCEL_PASSES_RESHARD_RESHARD_H
