//===- TrainerKernels.h - A trainer's kernels in a segment ------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_STEPMODEL_TRAINERKERNELS_H
#define ACCEL_PASSES_STEPMODEL_TRAINERKERNELS_H

#include "passes/Frameworks/Framework.h"
#include "passes/StepModel/SegmentGraph.h"

namespace accel {

/// The target with the rates of all of the model's operators: TF32 in place of
/// fp32 where the kernels say so and the target has it.
Target targetOfModel(const Target &target, const frameworks::Kernels &kernels);
/// The target as the layers see it: attention at the rate of their kernels,
/// matmuls of fp8 operands where the kernels say so and the target has them.
Target targetOfLayers(const Target &target, const frameworks::Kernels &kernels);

/// What per-operator checkpointing keeps of each operator's results
/// (SegmentGraph::pointwiseKeeps), or which instructions are the attention
/// module's (SegmentGraph::child, 0).
void markSelective(SegmentGraph &graph, frameworks::Selective selective);

/// Of each instruction, whether it is between the projections of an attention:
/// its kernel, or what stands for it; views of what those make are.
std::vector<bool> coreOfAttention(const SegmentGraph &graph);

/// The training loop's variables hold the logits, in each dtype that they have,
/// until the loss is there.
void holdLogits(SegmentGraph &graph);

} // namespace accel

#endif // ACCEL_PASSES_STEPMODEL_TRAINERKERNELS_H
