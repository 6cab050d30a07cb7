//===- HoistGathersPass.h - hoist-gathers ---------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_PREFETCH_HOISTGATHERSPASS_H
#define ACCEL_PASSES_PREFETCH_HOISTGATHERSPASS_H

#include <memory>

namespace mlir {
class Pass;
}

namespace accel {
/// `hoist-gathers`: applies the job's prefetch decision to every program.
std::unique_ptr<mlir::Pass> createHoistGathersPass();
} // namespace accel

#endif // ACCEL_PASSES_PREFETCH_HOISTGATHERSPASS_H
