//===- AdamW.h - The fused update of flat shards ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_OPTIMIZER_ADAMW_H
#define ACCEL_RUNTIME_OPTIMIZER_ADAMW_H

#include "runtime/plan/Plan.h"

#include <ATen/core/Tensor.h>

#include <vector>

namespace accel::run {

/// torch.optim.AdamW(fused=True) over the pieces of each unit's shard that
/// belong to one optimizer group: one call of aten::_fused_adamw_ each. What
/// changes from step to step is in 0-d tensors.
class AdamW {
public:
  /// One unit's buffers. `gradient` may be without memory until `update`.
  struct Unit {
    at::Tensor shard, gradient, average, averageSquare;
    int64_t shardBegin = 0; // element of the flat buffer where the shard starts
    const std::vector<plan::Unit::GroupRange> *ranges = nullptr;
  };
  AdamW(const plan::Optimizer &options, const std::vector<Unit> &units,
        c10::Device device);

  /// By group.
  void setLearningRates(const std::vector<double> &rates);
  /// Counts a step that is taken; before the first `update` of the step.
  void beginStep();
  void update(int unit);

  double steps() const { return stepCount; }
  void setSteps(double steps);

private:
  struct Piece {
    int group;
    std::vector<at::Tensor> shard, gradient, average, averageSquare;
  };
  plan::Optimizer options;
  std::vector<std::vector<Piece>> pieces; // by unit
  std::vector<at::Tensor> rates;          // by group, 0-d
  std::vector<at::Tensor> stepTensor;     // one, 0-d f32: all pieces share it
  double stepCount = 0;
};

} // namespace accel::run

#endif // ACCEL_RUNTIME_OPTIMIZER_ADAMW_H
