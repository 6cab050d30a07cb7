//===- SelectKernels.h - Kernels for attention and norms --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_KERNELS_SELECTKERNELS_H
#define ACCEL_PASSES_KERNELS_SELECTKERNELS_H

#include "dialects/Aten/Aten.h"
#include "passes/Frameworks/Framework.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel {

/// Replaces `aten.scaled_dot_product_attention` and `aten.rms_norm` by what
/// `device` runs: on CPUs its flash attention and the norm's single steps, on
/// CUDA flash attention for bf16 and fp16, or cuDNN's where torch takes it
/// (`kernels`), memory-efficient attention for other types, and the fused norm.
/// With `eager`, norms are single steps on
/// CUDA too, as transformers' own modules run them. Element types must be
/// final.
void selectKernels(mlir::func::FuncOp function, aten::Device device,
                   bool eager = false, const frameworks::Kernels &kernels = {});

} // namespace accel

#endif // ACCEL_PASSES_KERNELS_SELECTKERNELS_H
