//===- Optimizer.cpp - The update of flat shards --------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/optimizer/Optimizer.h"

#include "runtime/tensors/Tensors.h"

#include <algorithm>
#include <utility>

namespace accel::run {

using Make = std::unique_ptr<Optimizer>(
    const plan::Optimizer &options, const std::vector<Optimizer::Unit> &units,
    c10::Device device);
Make makeAdafactor, makeAdamW, makeLion, makeMuon, makeSgd;

namespace {
/// By the description's name, those with `executed`.
constexpr std::pair<const char *, Make *> makers[] = {
    {"adamw", makeAdamW},
    {"sgd", makeSgd},
    {"lion", makeLion},
    {"adafactor", makeAdafactor},
    {"muon", makeMuon}};
} // namespace

at::Tensor Optimizer::Unit::state(std::string_view name, int parameter,
                                  int64_t from, int64_t to) const {
  for (size_t i = 0; i < layouts.size(); ++i)
    if (layouts[i].rule.name == name && layouts[i].sharded)
      return states[i].narrow(0, from - shardBegin, to - from);
  return whole(name, parameter)
      .narrow(0, from - shape.parameters[parameter].offset, to - from);
}

at::Tensor Optimizer::Unit::whole(std::string_view name, int parameter) const {
  for (size_t i = 0; i < layouts.size(); ++i)
    if (layouts[i].rule.name == name)
      for (const plan::StatePart &part : layouts[i].parts)
        if (part.parameter == parameter)
          return states[i].narrow(0, part.offset, part.numel);
  return {};
}

Optimizer::Optimizer(const plan::Optimizer &options, c10::Device device)
    : options(options) {
  auto scalar = [&](c10::ScalarType type) {
    at::Tensor value = hostScalar(0, type);
    return device.is_cpu() ? value : value.to(device);
  };
  // The CPU kernels take the rate as f64, the CUDA kernels as f32.
  for (size_t i = 0; i < options.groups.size(); ++i)
    rates.push_back(scalar(device.is_cpu() ? c10::ScalarType::Double
                                           : c10::ScalarType::Float));
  stepTensor.push_back(scalar(c10::ScalarType::Float));
}

ElementOptimizer::ElementOptimizer(const plan::Optimizer &options,
                                   const std::vector<Unit> &units,
                                   c10::Device device)
    : Optimizer(options, device) {
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
      Piece piece{range.group, cut(unit.shard), cut(unit.gradient), {}};
      for (const at::Tensor &state : unit.states)
        piece.states.push_back(cut(state));
      list.push_back(std::move(piece));
    }
  }
}

void Optimizer::setLearningRates(const std::vector<double> &values) {
  hostRates = values;
  for (size_t i = 0; i < rates.size(); ++i)
    rates[i].fill_(values[i]);
}

void Optimizer::beginStep() {
  if (!leftOut)
    return setSteps(stepCount + 1);
  // The host may not know yet how many steps before this one were taken.
  stepCount += 1;
  stepTensor[0].add_(1).sub_(*leftOut);
}

void Optimizer::steer(at::Tensor by, at::Tensor without) {
  divisor.reset();
  leftOut.reset();
  if (by.defined())
    divisor = std::move(by);
  if (without.defined())
    leftOut = std::move(without);
}

void Optimizer::setSteps(double steps) {
  stepCount = steps;
  stepTensor[0].fill_(stepCount);
}

void ElementOptimizer::update(int unit) {
  for (Piece &piece : pieces[unit])
    updatePiece(piece);
}

std::unique_ptr<Optimizer>
makeOptimizer(const plan::Optimizer &options,
              const std::vector<Optimizer::Unit> &units, c10::Device device) {
  for (const auto &[name, make] : makers)
    if (options.name == name)
      return make(options, units, device);
  return nullptr;
}

} // namespace accel::run
