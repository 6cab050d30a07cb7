//===- SelectAttention.h - Kernels for attention ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_KERNELS_SELECTATTENTION_H
#define ACCEL_PASSES_KERNELS_SELECTATTENTION_H

#include "dialects/Aten/Aten.h"

#include "passes/Frameworks/Framework.h"

#include "mlir/IR/Builders.h"

namespace accel {

/// What `device` runs for `op`, at the place of `b`. CPUs have flash attention
/// with any mask; CUDA has flash attention for bf16 and fp16 without a mask,
/// and memory-efficient attention for the rest, or cuDNN's for 16 bits where
/// torch takes it (`kernels.cudnnHead`). Capped scores, and an fp32 mask of
/// 16-bit scores on CUDA, have no kernel: they are single matmuls, as is with
/// `eager` whatever transformers runs so. A window becomes a mask. Values whose
/// heads have another size than the keys' go to the memory-efficient kernel,
/// the one of torch's that takes them; CPUs have none. So do grouped queries in
/// fp32 and a mask that is trained where transformers runs them
/// (`kernels.efficientTakesAll`), else they are torch's math. Weights are
/// dropped by CUDA's flash and memory-efficient kernels themselves; on CPUs,
/// whose kernel drops none, where a mask is trained, and where ranks share a
/// sequence (cp, sp), attention with dropout is single matmuls.
mlir::Value selectAttention(mlir::OpBuilder &b, aten::Device device, bool eager,
                            const frameworks::Kernels &kernels,
                            aten::ScaledDotProductAttentionOp op);

/// Single matmuls, as transformers' eager attention computes `op`, that fill
/// with the least number where `filled`, [B, 1, S, T], holds.
mlir::Value attentionByParts(mlir::OpBuilder &b,
                             aten::ScaledDotProductAttentionOp op,
                             mlir::Value filled);

/// Two batched matmuls, with one kernel that scales, masks and takes the
/// softmax between them, and dropout (frameworks::AttentionKernel).
mlir::Value attentionByFusedSoftmax(mlir::OpBuilder &b,
                                    aten::ScaledDotProductAttentionOp op);

/// The least number that a float type of 16 or 32 bits holds.
double leastOf(mlir::Type type);

} // namespace accel

#endif // ACCEL_PASSES_KERNELS_SELECTATTENTION_H
