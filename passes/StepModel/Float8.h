//===- Float8.h - Linear layers with fp8 operands ---------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What torchao's Float8Linear and TransformerEngine's Linear run in place of a
// layer's three matmuls, by their sources: torchao 0.18
// (float8/float8_linear.py, float8_utils.py, float8_ops.py), TransformerEngine
// 2.18 (pytorch/module/linear.py).
//
// torchao saves the input and the weight as they are, and casts the operands
// of each matmul: |x|, its maximum, a scale, the product with it in fp32,
// clamped, in 8 bits. The right operand of a product is copied where it does
// not lie by columns. TransformerEngine casts and transposes in one kernel and
// saves 8-bit copies: the transposed input, and both forms of the weight, which
// under FSDP2 are made again in the backward.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_STEPMODEL_FLOAT8_H
#define ACCEL_PASSES_STEPMODEL_FLOAT8_H

#include "passes/StepModel/SegmentGraph.h"

namespace accel {

/// How the layers of a job compute.
struct Float8Form {
  bool transformerEngine = false;
  /// Of torchao: each row of an operand has a scale of its own, a power of two;
  /// the product for the weight's gradient stays in 16 bits.
  bool rowwise = false, wideGradWeight = false;
  /// Weights arrive in 8 bits (FSDP2's gather), or are cast where they are
  /// used.
  bool gathered = false;
  /// FSDP2: TransformerEngine saves no copy of a gathered weight.
  bool dropsWeights = false;
  /// Ranks of tp cast their part of what they gather (PrepareFloat8ModuleInput,
  /// NoopFwToFloat8BwDynamic of torchao/float8/float8_tensor_parallel.py), with
  /// the largest value of all ranks. Of one scale for each tensor.
  bool gathersInputs = false;
  /// torch.compile casts what two products read once.
  bool compiled = false;
};

/// The matmuls of one layer, as they were and as they are now.
struct Float8Layer {
  int parameter = -1; // slot
  int64_t rows = 0, in = 0, out = 0;
  std::vector<int> before, after; // instructions of the two functions
};

/// Replaces the matmuls that read `parameters` (slots). The instructions and
/// their marks stay in step.
std::vector<Float8Layer> useFloat8(SegmentGraph &graph,
                                   const std::vector<int> &parameters,
                                   const Float8Form &form);

} // namespace accel

#endif // ACCEL_PASSES_STEPMODEL_FLOAT8_H
