//===- Prefetch.h - How far ahead units are gathered -*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_PREFETCH_PREFETCH_H
#define ACCEL_PASSES_PREFETCH_PREFETCH_H

#include <memory>

namespace mlir {
class Pass;
}

namespace accel {
/// `prefetch`: decides how many units are gathered ahead (request "prefetch").
std::unique_ptr<mlir::Pass> createPrefetchPass();
} // namespace accel

#endif // ACCEL_PASSES_PREFETCH_PREFETCH_H
