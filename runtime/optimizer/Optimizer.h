//===- Optimizer.h - The update of flat shards ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_OPTIMIZER_OPTIMIZER_H
#define ACCEL_RUNTIME_OPTIMIZER_OPTIMIZER_H

#include "runtime/plan/UpdateLayout.h"

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace accel::run {

/// Updates each unit's shard from its gradient and states, which are those of
/// the description (runtime/plan/Optimizers.h) in its order. What changes from
/// step to step is in 0-d tensors.
class Optimizer {
public:
  using Exchange =
      std::function<void(at::Tensor &into, at::Tensor &from,
                         const std::vector<int64_t> &intoElements,
                         const std::vector<int64_t> &fromElements)>;
  /// One unit's buffers. `gradient` and `workspace` may be without memory until
  /// `update`.
  struct Unit {
    at::Tensor shard, gradient;
    std::vector<at::Tensor> states;
    int64_t shardBegin = 0; // element of the flat buffer where the shard starts
    const std::vector<plan::Unit::GroupRange> *ranges = nullptr;

    // For updates that read more than elements (plan::UpdateReads).
    plan::UpdateShape shape;
    std::vector<plan::StateLayout> layouts; // of `states`
    at::Tensor workspace;                   // bytes
    /// Adds a tensor up over the ranks that share the unit.
    std::function<void(at::Tensor &)> sum;
    /// Parts of `from`, so many elements for each of those ranks, for such
    /// parts of `into`.
    Exchange exchange;

    /// A state's values for elements [from, to) of the unit's flat buffer,
    /// which this rank has of `shape.parameters[parameter]`.
    at::Tensor state(std::string_view name, int parameter, int64_t from,
                     int64_t to) const;
    /// The parameter's part of a state that every rank has whole.
    at::Tensor whole(std::string_view name, int parameter) const;
  };
  Optimizer(const plan::Optimizer &options, c10::Device device);
  virtual ~Optimizer() = default;

  /// By group.
  void setLearningRates(const std::vector<double> &rates);
  /// Counts a step that is taken; before the first `update` of the step.
  void beginStep();
  /// Whether kernels divide gradients and leave steps out themselves, so that
  /// the host need not know (`steer`).
  virtual bool isSteered() const { return false; }
  /// Updates divide gradients by `divisor` and do nothing where `leftOut` is 1,
  /// 0-d f32 tensors of the device whose values may change from step to step.
  /// Undefined: neither. Counts of steps follow.
  void steer(at::Tensor divisor, at::Tensor leftOut);
  /// A step that `beginStep` has counted was left out.
  void takeBack() { stepCount -= 1; }
  virtual void update(int unit) = 0;

  double steps() const { return stepCount; }
  void setSteps(double steps);

protected:
  double number(const char *name, size_t i = 0) const {
    return plan::numberOf(options, name, i);
  }
  double weightDecay(int group) const {
    return options.groups[group].weightDecay;
  }

  const plan::Optimizer options;
  std::vector<at::Tensor> rates;      // by group, 0-d
  std::vector<double> hostRates;      // the same
  std::vector<at::Tensor> stepTensor; // one, 0-d f32: all pieces share it
  std::optional<at::Tensor> divisor, leftOut; // see `steer`
  double stepCount = 0;
};

/// One that reads elements alone: any part of a shard is updated by itself.
class ElementOptimizer : public Optimizer {
public:
  ElementOptimizer(const plan::Optimizer &options,
                   const std::vector<Unit> &units, c10::Device device);
  void update(int unit) override;

protected:
  /// The elements of one unit's shard that belong to one optimizer group. Each
  /// list holds one tensor, as fused kernels take them.
  struct Piece {
    int group;
    std::vector<at::Tensor> shard, gradient;
    std::vector<std::vector<at::Tensor>> states;
  };
  virtual void updatePiece(Piece &piece) = 0;

private:
  std::vector<std::vector<Piece>> pieces; // by unit
};

/// Null for one that accel-run does not execute.
std::unique_ptr<Optimizer>
makeOptimizer(const plan::Optimizer &options,
              const std::vector<Optimizer::Unit> &units, c10::Device device);

} // namespace accel::run

#endif // ACCEL_RUNTIME_OPTIMIZER_OPTIMIZER_H
