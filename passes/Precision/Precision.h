//===- Precision.h - The dtypes of each unit --------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_PRECISION_PRECISION_H
#define ACCEL_PASSES_PRECISION_PRECISION_H

#include <memory>

namespace mlir {
class Pass;
}

namespace accel {
/// `precision`: decides each unit's storage, compute, reduce and output dtype
/// from the request "precision" {upcast, param, reduce, output}; a dtype that
/// is not asked for follows FSDP2 (torch 2.15): compute is the storage dtype,
/// gradients are reduced in the storage dtype, outputs keep the compute dtype.
std::unique_ptr<mlir::Pass> createPrecisionPass();
} // namespace accel

#endif // ACCEL_PASSES_PRECISION_PRECISION_H
