//===- ActivationCheckpointing.h - Which segments are recomputed *- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_CHECKPOINT_ACTIVATIONCHECKPOINTING_H
#define ACCEL_PASSES_CHECKPOINT_ACTIVATIONCHECKPOINTING_H

#include <memory>

namespace mlir {
class Pass;
}

namespace accel {
/// `activation-checkpointing`: decides the checkpoint mode of the job and of
/// each call from the request "checkpoint": {mode}, or {mode = "budget", bytes}
/// (of all layers together; activation-budget shares them), and {calls = {path
/// = mode, bytes or operations}} for single segments. As in Accelerate, `full`
/// and `budget` hold for the layers that the wrap policy names; the other
/// segments keep the pointwise default.
std::unique_ptr<mlir::Pass> createActivationCheckpointingPass();
} // namespace accel

#endif // ACCEL_PASSES_CHECKPOINT_ACTIVATIONCHECKPOINTING_H
