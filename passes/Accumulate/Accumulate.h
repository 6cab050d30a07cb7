//===- Accumulate.h - What is kept between micro-batches -*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_ACCUMULATE_ACCUMULATE_H
#define ACCEL_PASSES_ACCUMULATE_ACCUMULATE_H

#include <memory>

namespace mlir {
class Pass;
}

namespace accel {
/// `accumulate`: decides how gradients are accumulated (request
/// "accumulation").
std::unique_ptr<mlir::Pass> createAccumulatePass();
} // namespace accel

#endif // ACCEL_PASSES_ACCUMULATE_ACCUMULATE_H
