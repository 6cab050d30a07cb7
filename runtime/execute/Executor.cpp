//===- Executor.cpp - A rank's job in memory ------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/execute/Executor.h"

#include "runtime/execute/Kernels.h"
#include "runtime/execute/Tensors.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace accel::run {

Executor::Executor(const plan::Plan &plan, Device &device, Groups &groups)
    : job(plan), hardware(device), communicators(groups),
      lossScaler(plan.job.lossScaling) {
  at::AutoDispatchBelowADInplaceOrView below;
  at::NoGradGuard noGrad;
  const Mesh &mesh = groups.mesh();
  std::vector<Optimizer::Unit> updated;
  for (size_t i = 0; i < plan.units.size(); ++i) {
    const plan::Unit &unit = plan.units[i];
    units.push_back(std::make_unique<UnitStorage>(
        plan, i, mesh.position(unit.shardAxes), device));
    UnitStorage &storage = *units.back();
    Optimizer::Unit slot;
    if (unit.trainable) {
      slot.shard = storage.shard();
      slot.gradient = storage.buffer(plan::Role::ShardGradient).flat;
      for (int state = 0; state < storage.numStates(); ++state)
        slot.states.push_back(storage.state(state));
      slot.shardBegin = storage.shardBegin();
      slot.ranges = &unit.groupRanges;
    }
    updated.push_back(std::move(slot));
  }
  optimizer = makeOptimizer(plan.job.optimizer, updated, device.device());
  if (!optimizer)
    throw PlanError("optimizer '" + plan.job.optimizer.name +
                    "' is predicted only, accel-run does not execute it");
  for (const plan::Function &function : plan.functions)
    functions.push_back(std::make_unique<FunctionRunner>(function, device));
  for (const plan::Program &program : plan.programs)
    programs.push_back(std::make_unique<ProgramRunner>(*this, program));

  // The norm's sums are reduced over the axes that shard a unit, one sum for
  // each such set of axes.
  std::map<std::string, int> sets;
  auto onDevice = [&](double value) {
    at::Tensor scalar = hostScalar(value, c10::ScalarType::Double);
    return device.device().is_cpu() ? scalar : scalar.to(device.device());
  };
  for (const plan::Unit &unit : plan.units) {
    if (!unit.trainable) {
      squareSet.push_back(-1);
      continue;
    }
    auto [at, isNew] =
        sets.emplace(mesh.groupName(unit.shardAxes), sets.size());
    squareSet.push_back(at->second);
    if (!isNew)
      continue;
    squareSums.push_back(onDevice(0));
    squareGroups.push_back(groups.over(unit.shardAxes, "reduce"));
  }
  coefficient = onDevice(1);
}

double Executor::totalSquares() {
  for (at::Tensor &sum : squareSums)
    sum.zero_();
  for (size_t i = 0; i < units.size(); ++i)
    if (squareSet[i] >= 0)
      addSquares(units[i]->buffer(plan::Role::ShardGradient).flat,
                 squareSums[squareSet[i]]);
  double total = 0;
  for (size_t set = 0; set < squareSums.size(); ++set) {
    if (squareGroups[set])
      squareGroups[set]->allReduce(squareSums[set]).wait();
    total += squareSums[set].item<double>();
  }
  return total;
}

void Executor::skipNotFinite(bool skips) {
  skipsNotFinite = skips;
  if (!skips)
    return;
  for (const plan::Program &program : job.programs)
    for (const plan::Step &step : program.steps)
      if (step.kind == plan::StepKind::GradNorm)
        return;
  throw PlanError("--on-nan skip needs the norm of the gradients before the "
                  "update: plan with optimizer.max_grad_norm");
}

/// torch.nn.utils.clip_grad_norm_, after GradScaler.unscale_.
void Executor::clipGradients() {
  const double scale = lossScaler.scale();
  const double norm = std::sqrt(totalSquares()) / scale;
  result.gradNorm = norm;
  result.hasGradNorm = true;
  if ((lossScaler.enabled() || skipsNotFinite) && !std::isfinite(norm)) {
    result.skipped = true;
    return;
  }
  double factor = 1.0 / scale;
  const double limit = job.job.optimizer.maxGradNorm;
  if (limit > 0) {
    const double clip = limit / (norm + 1e-6);
    factor *= clip < 1.0 || std::isnan(clip) ? clip : 1.0;
  }
  coefficient.fill_(factor);
  for (size_t i = 0; i < units.size(); ++i)
    if (squareSet[i] >= 0)
      scaleBy(units[i]->buffer(plan::Role::ShardGradient).flat, coefficient);
}

void Executor::update(int unit) {
  if (result.skipped)
    return;
  if (!counted) {
    optimizer->beginStep();
    counted = true;
  }
  optimizer->update(unit);
}

double Executor::runProgram(ProgramRunner &program, const MakeInput &input,
                            double seed, std::vector<StepTime> *times) {
  std::vector<at::Tensor> inputs;
  for (int value : program.program().inputs) {
    const plan::Value &description = program.program().values[value];
    if (description.name == "loss_seed") {
      at::Tensor tensor =
          at::empty({}, at::TensorOptions(scalarType(description.dtype))
                            .device(hardware.device()));
      tensor.fill_(seed);
      inputs.push_back(std::move(tensor));
      continue;
    }
    at::Tensor tensor = input(description.name);
    inputs.push_back(
        tensor.to(hardware.device(), scalarType(description.dtype)));
    if (inputs.back().sizes() != c10::IntArrayRef(description.shape))
      throw PlanError("program '" + program.program().name + "': input '" +
                      description.name + "' has another shape than the data's");
  }
  at::Tensor loss = program.run(std::move(inputs), times);
  return loss.defined() ? loss.item<double>() : 0.0;
}

StepResult Executor::step(
    const std::function<at::Tensor(int64_t, const std::string &)> &input,
    const std::vector<double> &learningRates, int64_t microBatch,
    std::vector<std::vector<StepTime>> *times) {
  at::AutoDispatchBelowADInplaceOrView below;
  at::NoGradGuard noGrad;
  optimizer->setLearningRates(learningRates);
  result = StepResult();
  counted = false;
  const double seed =
      lossScaler.scale() / static_cast<double>(communicators.mesh().dataSize() *
                                               job.job.accumulation);
  int64_t slot = 0;
  for (const auto &[index, repeat] : job.step)
    for (int64_t i = 0; i < repeat; ++i, ++slot) {
      std::vector<StepTime> *into = nullptr;
      if (times)
        into = &times->emplace_back();
      drawn = {static_cast<uint64_t>(job.job.randomSeed),
               microBatch + slot * communicators.mesh().dataSize()};
      result.loss += runProgram(
          *programs[index],
          [&](const std::string &name) { return input(slot, name); }, seed,
          into);
    }
  result.loss /= std::max<int64_t>(slot, 1);
  lossScaler.update(result.skipped);
  return result;
}

double Executor::evaluate(const MakeInput &input) {
  at::AutoDispatchBelowADInplaceOrView below;
  at::NoGradGuard noGrad;
  return runProgram(*programs[job.eval], input, 1.0, nullptr);
}

} // namespace accel::run
