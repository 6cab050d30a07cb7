//===- Dequantize.h - Matmuls with quantised weights ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_STEPMODEL_DEQUANTIZE_H
#define ACCEL_PASSES_STEPMODEL_DEQUANTIZE_H

#include "passes/StepModel/SegmentGraph.h"
#include "runtime/plan/QuantizedWeights.h"

namespace accel {

struct MatmulForm {
  /// torch's operators unpack the saved copy one after the other, where a
  /// kernel else does it at once.
  bool byOperators = false;
  bool findsOutliers = false; // Quantization::threshold
};

/// Gives the matmuls that read the parameter in slot `parameter` what its
/// format needs: a copy of the weight in 16 bits while each runs, or one that
/// autograd saves, and the bytes moved to make it; of some formats the backward
/// reads the matmul's input. LLM.int8() multiplies integers in the forward, and
/// makes the copy in the backward alone. The instructions and their marks stay
/// in step.
void dequantize(SegmentGraph &graph, int parameter,
                plan::QuantizedMatmul product,
                const plan::QuantizedWeight &weight,
                const MatmulForm &form = {});

} // namespace accel

#endif // ACCEL_PASSES_STEPMODEL_DEQUANTIZE_H
