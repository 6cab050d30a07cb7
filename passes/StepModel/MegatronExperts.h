//===- MegatronExperts.h - Experts as Megatron-Core runs them ---*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Megatron-Core's MoELayer (core/transformer/moe) with grouped matmuls: a rank
// routes its own tokens, sorts their rows by expert, exchanges rows with the
// ranks that share the experts, sorts what came by its own experts, and
// multiplies. Probabilities are a factor of the activation, so that results
// come back as a plain sum.
//
// Rows are taken to be spread evenly over experts, as the benchmarks force them
// to be (moe_router_force_load_balancing) and a balanced router makes them.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_STEPMODEL_MEGATRONEXPERTS_H
#define ACCEL_PASSES_STEPMODEL_MEGATRONEXPERTS_H

#include "passes/StepModel/SegmentGraph.h"

#include <string>

namespace accel {

/// Who shares the experts of a layer.
struct ExpertRanks {
  int64_t ranks = 1;  // each has an equal part of the experts
  int64_t tensor = 1; // ranks that split each expert
  /// Dispatch::once: rows are permuted where they arrive, and summed before
  /// they go back.
  bool sendsOnce = false;
  bool overlapped = false; // with another micro-batch's computation
  /// Both matrices of an expert have biases (add_bias_linear). The second's is
  /// added expert by expert, times the probabilities, in fp32
  /// (TEGroupedMLP._apply_bias of megatron/core/transformer/moe/experts.py).
  bool biases = false;
  /// The activation, its casts to 8 bits and biases are epilogues of the
  /// products (NVTE_CUTEDSL_FUSED_GROUPED_MLP of Transformer Engine's op
  /// fuser).
  bool fused = false;
};

/// A rank's part of experts' matrices [E, ..] under `experts`, of which ranks
/// of tp have parts under `tensor` now.
std::vector<int64_t> ownExperts(std::vector<int64_t> shape, int64_t dim,
                                const ExpertRanks &experts, int64_t tensor);

/// Writes the layer's mixture anew in `graph`, forward and backward; nothing
/// where it has none. Returns why it cannot, or "".
std::string useMegatronExperts(SegmentGraph &graph, const ExpertRanks &experts,
                               const Target *target);

} // namespace accel

#endif // ACCEL_PASSES_STEPMODEL_MEGATRONEXPERTS_H
