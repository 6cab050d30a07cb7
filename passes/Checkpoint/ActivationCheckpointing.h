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
/// each call from the request "checkpoint" {mode}. As in Accelerate, `full`
/// holds for the layers that the wrap policy names; the other segments keep
/// the pointwise default. Under the other modes, `calls` of the request gives
/// single segments modes of their own, by path.
std::unique_ptr<mlir::Pass> createActivationCheckpointingPass();
} // namespace accel

#endif // ACCEL_PASSES_CHECKPOINT_ACTIVATIONCHECKPOINTING_H
