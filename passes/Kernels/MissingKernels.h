//===- MissingKernels.h - Layers that accel-run cannot run ------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_KERNELS_MISSINGKERNELS_H
#define ACCEL_PASSES_KERNELS_MISSINGKERNELS_H

namespace accel {

/// Their kernels are of libraries that accel-run does not call.
inline constexpr const char *noScanKernel =
    "accel-run has no kernel for Mamba-2 layers (mamba_ssm's scan); FSDP, DDP, "
    "DeepSpeed and Megatron are predicted";
inline constexpr const char *noDeltaKernel =
    "accel-run has no kernel for layers of a gated delta rule; FSDP, DDP, "
    "DeepSpeed and one process of transformers' Trainer are predicted";

} // namespace accel

#endif // ACCEL_PASSES_KERNELS_MISSINGKERNELS_H
