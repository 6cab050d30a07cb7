//===- MegatronSegments.h - The segments of a Megatron job ------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FRAMEWORKSTEPS_MEGATRONSEGMENTS_H
#define ACCEL_PASSES_FRAMEWORKSTEPS_MEGATRONSEGMENTS_H

#include "dialects/Sharding/Sharding.h"
#include "passes/Frameworks/Framework.h"
#include "passes/StepModel/MegatronKernels.h"
#include "passes/StepModel/MegatronLayers.h"

namespace accel {

/// What the decision `megatron` of a job makes of its step model. Nothing
/// changes without one.
class MegatronSegments {
public:
  void read(mlir::ModuleOp module, sharding::JobOp job,
            const frameworks::Kernels &kernels, int64_t tensorRanks);

  /// A parameter with its part under tp: experts are shared by others, which
  /// have other parts of each where expert_tensor_parallel_size is not tp's.
  void addParameter(sharding::ParamOp op, StepParameter &parameter) const;

  /// The layers and the mixture of the function that `op` calls, as Megatron
  /// computes them.
  mlir::LogicalResult convert(sharding::CallOp op, SegmentGraph &graph,
                              const Target *target) const;

  /// A rank's experts meet more tokens than its own; `parameters` are those
  /// that the segment reads.
  void count(const StepModel &model, llvm::ArrayRef<int> parameters,
             SegmentKind &kind) const;

private:
  bool converts = false; // Transformer Engine computes the layers
  bool megatron = false;
  plan::RecomputeModules recomputed; // empty: attention's core
  int64_t tensorRanks = 1;
  ExpertRanks experts;
  MegatronLayers layers;
  MegatronHost host;
};

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKSTEPS_MEGATRONSEGMENTS_H
