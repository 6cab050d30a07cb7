//===- LossFrames.h - What Python holds while a loss is made ----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// transformers' forward and its loss function name tensors until they return,
// whatever autograd needs. Which ones depends on the release:
//
//   before 4.46  `logits = logits.float()` in the forward gives the 16-bit
//                logits back; the loss shifts a copy, and what the forward
//                returns is in fp32
//   4.46 to 4.48 the forward hands its logits to ForCausalLMLoss, which
//                converts and shifts them; the forward returns them as they are
//   from 4.49    the same, but labels are shifted instead
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FRAMEWORKSTEPS_LOSSFRAMES_H
#define ACCEL_PASSES_FRAMEWORKSTEPS_LOSSFRAMES_H

#include "passes/StepModel/SegmentGraph.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>

namespace accel {

/// `eager`: transformers' modules; `transformers`: their release.
void noteFrames(bool eager, const std::string &transformers,
                SegmentGraph &graph);

/// The logits of `joint`, which ends in the loss: what the head's matmul makes,
/// of which the loss reads a view, a copy or what an operator makes of each
/// element.
mlir::Value logitsOf(mlir::func::FuncOp joint);
/// The forward of transformers' model returns them in fp32.
bool returnsWide(mlir::Value logits, const std::string &transformers);

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKSTEPS_LOSSFRAMES_H
