//===- CallNames.h - What Python names while modules run --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_STEPMODEL_CALLNAMES_H
#define ACCEL_PASSES_STEPMODEL_CALLNAMES_H

#include "passes/StepModel/SegmentStorages.h"

namespace accel {

/// Tensors of a layer's forward that live longer than their last reader,
/// because a name of Python's is theirs until a call returns:
///
/// - what a module is given, by its caller (`hidden_states =
///   self.mlp(hidden_states)`, and PEFT's `x` of each layer with an adapter);
/// - in attention what the kernel reads, until the module returns, and
///   queries and keys as projections give them, until the kernel runs
///   (`query_states, key_states = apply_rotary_pos_emb(...)`).
///
/// Extends Storage::lastForward. By instruction: the storages that go behind it
/// although it does not read them. Norms' own names are not followed.
std::vector<std::vector<int>> extendToReturns(const SegmentGraph &graph,
                                              std::vector<Storage> &storages);

} // namespace accel

#endif // ACCEL_PASSES_STEPMODEL_CALLNAMES_H
