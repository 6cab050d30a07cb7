//===- MegatronStates.h - Mamba-2 layers as Megatron runs them --*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// MambaMixer._ssm_training of megatron/core/ssm/mamba_mixer.py: sequences come
// first, which copies where there are several; the scan multiplies by the gate;
// the norm is a kernel of its own, whose input is saved.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_STEPMODEL_MEGATRONSTATES_H
#define ACCEL_PASSES_STEPMODEL_MEGATRONSTATES_H

#include "passes/StepModel/SegmentGraph.h"

namespace accel {

/// Writes the layer's mixer anew in `graph`; nothing where it has none.
void useMegatronStates(SegmentGraph &graph);

} // namespace accel

#endif // ACCEL_PASSES_STEPMODEL_MEGATRONSTATES_H
