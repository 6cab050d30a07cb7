//===- MegatronRecompute.h - Megatron's selective recomputation -*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Which instructions of a layer the modules of --recompute-modules are. Three
// of them discard what they give as well (CheckpointWithoutOutput of
// megatron/core/tensor_parallel/random.py): mla_up_proj, layernorm and moe_act;
// the others are checkpoints of whole modules.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_STEPMODEL_MEGATRONRECOMPUTE_H
#define ACCEL_PASSES_STEPMODEL_MEGATRONRECOMPUTE_H

#include "passes/StepModel/SegmentGraph.h"
#include "runtime/plan/MegatronModules.h"

namespace accel {

/// Marks the checkpoints of a layer as children of `graph`, which has
/// Megatron's instructions already. A norm that Transformer Engine has in the
/// kernel of the projection behind it is none of `layernorm`.
void markRecomputed(SegmentGraph &graph, const plan::RecomputeModules &modules);

} // namespace accel

#endif // ACCEL_PASSES_STEPMODEL_MEGATRONRECOMPUTE_H
