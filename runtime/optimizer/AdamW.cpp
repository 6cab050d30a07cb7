//===- AdamW.cpp - The fused update of flat shards ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/optimizer/AdamW.h"

#include "runtime/execute/Tensors.h"

#include <ATen/ops/_fused_adamw.h>

#include <algorithm>

namespace accel::run {

AdamW::AdamW(const plan::Optimizer &options, const std::vector<Unit> &units,
             c10::Device device)
    : options(options) {
  auto scalar = [&](c10::ScalarType type) {
    at::Tensor value = hostScalar(0, type);
    return device.is_cpu() ? value : value.to(device);
  };
  // The CPU kernel takes the rate as f64, the CUDA kernel as f32.
  for (size_t i = 0; i < options.groups.size(); ++i)
    rates.push_back(scalar(device.is_cpu() ? c10::ScalarType::Double
                                           : c10::ScalarType::Float));
  stepTensor.push_back(scalar(c10::ScalarType::Float));
  for (const Unit &unit : units) {
    auto &list = pieces.emplace_back();
    if (!unit.ranges)
      continue;
    const int64_t end = unit.shardBegin + unit.shard.numel();
    for (const plan::Unit::GroupRange &range : *unit.ranges) {
      const int64_t from = std::max(range.begin, unit.shardBegin);
      const int64_t to = std::min(range.end, end);
      if (from >= to)
        continue;
      auto cut = [&](const at::Tensor &flat) {
        return std::vector<at::Tensor>{
            flat.narrow(0, from - unit.shardBegin, to - from)};
      };
      list.push_back({range.group, cut(unit.shard), cut(unit.gradient),
                      cut(unit.average), cut(unit.averageSquare)});
    }
  }
}

void AdamW::setLearningRates(const std::vector<double> &values) {
  for (size_t i = 0; i < rates.size(); ++i)
    rates[i].fill_(values[i]);
}

void AdamW::beginStep() {
  stepCount += 1;
  stepTensor[0].fill_(stepCount);
}

void AdamW::setSteps(double steps) {
  stepCount = steps;
  stepTensor[0].fill_(stepCount);
}

void AdamW::update(int unit) {
  for (Piece &piece : pieces[unit])
    at::_fused_adamw_(piece.shard, piece.gradient, piece.average,
                      piece.averageSquare, {}, stepTensor, rates[piece.group],
                      options.beta1, options.beta2,
                      options.groups[piece.group].weightDecay, options.eps,
                      /*amsgrad=*/false, /*maximize=*/false);
}

} // namespace accel::run
