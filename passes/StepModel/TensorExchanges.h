//===- TensorExchanges.h - What ranks of tp exchange in a layer -*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// NCCL gathers and scatters the first dimension of a tensor. Where tokens are
// another one, because there are several samples, DTensor's functional
// collectives copy: the ranks' parts are joined after a gather, and cut before
// a scatter (all_gather_tensor and reduce_scatter_tensor of
// torch/distributed/_functional_collectives.py).
//
// An exchange over tp may overlap with matmuls: as one collective, with matmuls
// of the backward that do not depend on it; or in one chunk per rank, with
// those that do, by Transformer Engine's userbuffers (tp_comm_overlap) or by
// asynchronous tensor parallelism (torch/_inductor/fx_passes/
// micro_pipeline_tp.py, torch/distributed/_symmetric_memory/__init__.py).
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_STEPMODEL_TENSOREXCHANGES_H
#define ACCEL_PASSES_STEPMODEL_TENSOREXCHANGES_H

#include "passes/Frameworks/Framework.h"
#include "passes/StepModel/SegmentGraph.h"

namespace accel {

/// Which matmuls an exchange over tp runs beside.
enum class TensorOverlap {
  None,
  /// In the backward of a layer cut by columns, whole collectives: what a
  /// weight's gradient reads is gathered again beside the input's gradient,
  /// and the input's gradient is summed (or summed and scattered) beside the
  /// weight's (LinearWithGradAccumulationAndAsyncCommunication of
  /// megatron/core/tensor_parallel/layers.py, and transformer_engine/pytorch/
  /// module/layernorm_linear.py). Nothing is hidden in the forward.
  WeightGradients,
  /// All that read what is gathered, or make what is scattered, through sums of
  /// gradients too.
  UserBuffers,
  /// A gather and the products whose left operand it is are one kernel, and so
  /// are a product and the scatter of what it makes. Nothing may stand between
  /// them, and the kernel needs no copies.
  SymmetricMemory
};

/// Sets the waits of exchanges that run beside matmuls.
void overlapTensor(SegmentGraph &graph, TensorOverlap how,
                   const Target &target);

/// Where DTensor splits a trainer's layers: adds its copies, and in a layer
/// that exchanges beside matmuls what those kernels do in their place. Without
/// a target only what is held.
void useDtensorExchanges(SegmentGraph &graph,
                         const frameworks::Kernels &kernels, bool layer,
                         const Target *target);

} // namespace accel

#endif // ACCEL_PASSES_STEPMODEL_TENSOREXCHANGES_H
