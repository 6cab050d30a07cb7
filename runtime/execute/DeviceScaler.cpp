//===- DeviceScaler.cpp - Loss scale and clipping on the device -----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/execute/DeviceScaler.h"

#include <ATen/ops/_amp_update_scale.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>

namespace accel::run {

DeviceScaler::DeviceScaler(c10::Device device) {
  const auto f32 = at::TensorOptions(at::kFloat).device(device);
  scaleTensor = at::ones({}, f32);
  goodSteps = at::zeros({}, f32.dtype(at::kInt));
  normTensor = at::zeros({}, f32.dtype(at::kDouble));
  divisorTensor = at::ones({}, f32);
  leftOutTensor = at::zeros({}, f32);
}

void DeviceScaler::set(const LossScaler &scaler) {
  rules = scaler.rules();
  scaleTensor.fill_(std::min(
      scaler.scale(), static_cast<double>(std::numeric_limits<float>::max())));
  goodSteps.fill_(scaler.get().goodSteps);
}

void DeviceScaler::decide(const at::Tensor &squares, double maxNorm,
                          bool checks) {
  normTensor.copy_(squares.sqrt().div_(scaleTensor));
  // clip = maxNorm / (norm + 1e-6), at most 1, as torch's clip_grad_norm_.
  if (maxNorm > 0)
    divisorTensor.copy_(
        normTensor.add(1e-6).div_(maxNorm).clamp_min_(1.0).mul_(scaleTensor));
  else
    divisorTensor.copy_(scaleTensor);
  if (checks)
    leftOutTensor.copy_(normTensor.isfinite().logical_not_());
}

void DeviceScaler::update() {
  at::_amp_update_scale_(scaleTensor, goodSteps, leftOutTensor,
                         rules.growthFactor, rules.backoffFactor,
                         rules.growthInterval);
}

} // namespace accel::run
