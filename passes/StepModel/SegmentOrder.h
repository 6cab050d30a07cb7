//===- SegmentOrder.h - The backward as autograd runs it --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_STEPMODEL_SEGMENTORDER_H
#define ACCEL_PASSES_STEPMODEL_SEGMENTORDER_H

#include "passes/StepModel/SegmentGraph.h"

namespace accel {

/// Calls `use(slot)` for each tensor that an instruction reads.
template <typename Use>
void forEachSlot(const plan::Instruction &instr, Use use) {
  for (const plan::Arg &arg : instr.args) {
    if (arg.kind == plan::Arg::Kind::Tensor ||
        arg.kind == plan::Arg::Kind::Wrapped)
      use(arg.slot);
    if (arg.kind == plan::Arg::Kind::Tensors)
      for (int64_t slot : arg.ints)
        if (slot >= 0) // an index that is left out
          use(static_cast<int>(slot));
  }
}

/// By slot: a gradient, made by the backward or given to it.
std::vector<bool> gradientSlots(const SegmentGraph &graph);

/// Instruction `i` sums two gradients of one value.
bool isGradientSum(const SegmentGraph &graph,
                   const std::vector<bool> &gradients, int i);

/// Instructions of the backward as autograd's engine runs them: gradients
/// that meet are summed when the second one arrives, not when the sum is
/// needed.
std::vector<int> backwardOrder(const SegmentGraph &graph,
                               const std::vector<bool> &gradients);

} // namespace accel

#endif // ACCEL_PASSES_STEPMODEL_SEGMENTORDER_H
