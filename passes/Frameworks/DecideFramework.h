//===- DecideFramework.h - What a framework does by itself ------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FRAMEWORKS_DECIDEFRAMEWORK_H
#define ACCEL_PASSES_FRAMEWORKS_DECIDEFRAMEWORK_H

#include <memory>

namespace mlir {
class Pass;
}

namespace accel {

/// `decide-framework`: the job's `offload`, `optimizer_step`, and DDP's buckets
/// or ZeRO's buffers, of frameworks other than accel-run.
std::unique_ptr<mlir::Pass> createDecideFrameworkPass();

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKS_DECIDEFRAMEWORK_H
