//===- MegatronFused.h - Megatron's pointwise kernels -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Dropout and the sum with the residual are one kernel (bias_dropout_fusion;
// bias_dropout_add_fused_train of megatron/core/fusions/fused_bias_dropout.py,
// and of megatron/model/transformer.py before).
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_STEPMODEL_MEGATRONFUSED_H
#define ACCEL_PASSES_STEPMODEL_MEGATRONFUSED_H

#include "passes/StepModel/SegmentGraph.h"

namespace accel {

/// What is dropped and then added is neither written nor read between. Bytes
/// held stay: the kernel writes the mask and the sum.
void fuseDropoutSums(SegmentGraph &graph);

} // namespace accel

#endif // ACCEL_PASSES_STEPMODEL_MEGATRONFUSED_H
