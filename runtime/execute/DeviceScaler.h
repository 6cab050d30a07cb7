//===- DeviceScaler.h - Loss scale and clipping on the device ---*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What LossScaler and clip_grad_norm_ decide, in 0-d tensors of a GPU, so that
// the host need not wait for the norm of the gradients: fused optimizers divide
// by `divisor` and leave a step out where `leftOut` is 1.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_RUNTIME_EXECUTE_DEVICESCALER_H
#define ACCEL_RUNTIME_EXECUTE_DEVICESCALER_H

#include "runtime/optimizer/LossScaler.h"

#include <ATen/core/Tensor.h>

namespace accel::run {

class DeviceScaler {
public:
  DeviceScaler() = default;
  explicit DeviceScaler(c10::Device device);

  /// Takes over what the host knows. Only while no step is queued: the device
  /// is ahead of the host otherwise.
  void set(const LossScaler &scaler);
  /// From the sum of the squares of all gradients (0-d f64) as they are,
  /// scaled: their norm, and what the update divides by and whether it happens.
  /// `maxNorm` 0: no clipping. `checks`: a norm that is not finite leaves the
  /// step out.
  void decide(const at::Tensor &squares, double maxNorm, bool checks);
  /// The scale of the next step, as torch's GradScaler updates it.
  void update();

  const at::Tensor &scale() const { return scaleTensor; }     // f32
  const at::Tensor &norm() const { return normTensor; }       // f64
  const at::Tensor &divisor() const { return divisorTensor; } // f32
  const at::Tensor &leftOut() const { return leftOutTensor; } // f32, 0 or 1

private:
  plan::GradScaler rules;
  at::Tensor scaleTensor, goodSteps; // f32, i32
  at::Tensor normTensor, divisorTensor, leftOutTensor;
};

} // namespace accel::run

#endif // ACCEL_RUNTIME_EXECUTE_DEVICESCALER_H
