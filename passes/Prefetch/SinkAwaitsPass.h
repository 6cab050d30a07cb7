//===- SinkAwaitsPass.h - sink-awaits -------------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_PREFETCH_SINKAWAITSPASS_H
#define ACCEL_PASSES_PREFETCH_SINKAWAITSPASS_H

#include <memory>

namespace mlir {
class Pass;
}

namespace accel {
/// `sink-awaits`: lets each reduction overlap with the next backward.
std::unique_ptr<mlir::Pass> createSinkAwaitsPass();
} // namespace accel

#endif // ACCEL_PASSES_PREFETCH_SINKAWAITSPASS_H
