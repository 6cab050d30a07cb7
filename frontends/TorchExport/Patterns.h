//===- Patterns.h - What several operations are together --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_TORCHEXPORT_PATTERNS_H
#define ACCEL_FRONTENDS_TORCHEXPORT_PATTERNS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel::torchexport {

/// Finds in a flat function what the dialect has as one operation, as the
/// configurations' importer writes it: RMSNorm spelled out, key and value heads
/// repeated for grouped queries, slices that are read one by one.
void recognize(mlir::func::FuncOp flat);

/// Erases operations whose results nobody reads.
void eraseDead(mlir::func::FuncOp flat);

} // namespace accel::torchexport

#endif // ACCEL_FRONTENDS_TORCHEXPORT_PATTERNS_H
