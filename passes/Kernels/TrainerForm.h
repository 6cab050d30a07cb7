//===- TrainerForm.h - Functions as a trainer's models compute --*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_KERNELS_TRAINERFORM_H
#define ACCEL_PASSES_KERNELS_TRAINERFORM_H

#include "passes/Frameworks/Framework.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel {

/// Brings `function`, which has no gradients and no kernels yet, into the form
/// that `kernels` describe: norms, rotary positions, copies of key heads,
/// SwiGLU in one kernel, the loss. The values stay those of transformers'
/// model up to rounding, but for the order of rotated pairs.
void toTrainerForm(mlir::func::FuncOp function,
                   const frameworks::Kernels &kernels);

} // namespace accel

#endif // ACCEL_PASSES_KERNELS_TRAINERFORM_H
