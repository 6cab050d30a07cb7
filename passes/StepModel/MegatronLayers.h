//===- MegatronLayers.h - Transformer Engine's linear layers ----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What Megatron's layers hold and wait for where Transformer Engine runs them:
// operands of the weight's gradient in 8 or 4 bits, and exchanges beside
// computation.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_STEPMODEL_MEGATRONLAYERS_H
#define ACCEL_PASSES_STEPMODEL_MEGATRONLAYERS_H

#include "passes/StepModel/SegmentGraph.h"
#include "passes/Targets/LinearOperands.h"

namespace accel {

struct MegatronLayers {
  /// The input of linear layers is quantised once, and what the weight's
  /// gradient reads of it has 8 bits, or 4 (pytorch/module/linear.py,
  /// layernorm_linear.py, grouped_linear.py). The tensor in 16 bits stays where
  /// somebody else needs it. Ranks of tp gather the 8 bits.
  /// With 4 bits the largest value is found first, so that no norm writes them.
  LinearOperands operands = LinearOperands::Computed;
  /// Layers exchange over tp while their matmuls run (tp_comm_overlap,
  /// Transformer Engine's userbuffers), but for the first piece.
  bool overlapsTensor = false;
  /// ExpertRanks::fused.
  bool fusedExperts = false;
};

/// Changes `graph` and its waits; without a target only what is held.
/// Keys of other ranks are sent while attention computes
/// (AttnFuncWithCPAndKVP2P of
/// pytorch/attention/dot_product_attention/context_parallel.py).
void useMegatronLayers(SegmentGraph &graph, const MegatronLayers &layers,
                       const Target *target);

} // namespace accel

#endif // ACCEL_PASSES_STEPMODEL_MEGATRONLAYERS_H
