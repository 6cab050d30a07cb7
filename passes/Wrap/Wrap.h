//===- Wrap.h - Which parameters form a unit --------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_WRAP_WRAP_H
#define ACCEL_PASSES_WRAP_WRAP_H

#include <memory>

namespace mlir {
class Pass;
}

namespace accel {
/// `wrap`: decides the units of the request "wrap" and creates the
/// `sharding.unit`s. A unit whose parameters are partly frozen becomes two.
std::unique_ptr<mlir::Pass> createWrapPass();
} // namespace accel

#endif // ACCEL_PASSES_WRAP_WRAP_H
