//===- Clip.cpp - Norms of gradients and what follows from them -----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/execute/Executor.h"

#include "runtime/tensors/Kernels.h"
#include "runtime/tensors/Tensors.h"

#include <cmath>

namespace accel::run {

/// Adds the squares of a range of the unit's gradients.
void Executor::addSquaresOf(int unit, const Squares &range,
                            const at::Tensor &into) {
  if (range.begin < range.end)
    addSquares(gradientOf(unit).narrow(0, range.begin, range.end - range.begin),
               into);
}

/// Unit by unit as gradients arrive, while the device computes the next ones.
/// What each has is added in the order of units, so that the bits do not hang
/// on the order of arrival.
void Executor::sumSquaresOnHost() {
  std::vector<std::vector<double>> parts(units.size());
  const at::Tensor part = hostScalar(0, c10::ScalarType::Double);
  for (int unit : arrivals) {
    awaitGradients(unit);
    for (const Squares &range : squares[unit]) {
      part.zero_();
      addSquaresOf(unit, range, part);
      parts[unit].push_back(part.item<double>());
    }
  }
  std::vector<double> sums(squareSums.size());
  for (size_t i = 0; i < units.size(); ++i)
    for (size_t range = 0; range < parts[i].size(); ++range)
      sums[squares[i][range].set] += parts[i][range];
  for (size_t set = 0; set < sums.size(); ++set)
    squareSums[set].copy_(hostScalar(sums[set], c10::ScalarType::Double));
}

void Executor::sumSquares() {
  if (job.offload.states) {
    sumSquaresOnHost();
  } else {
    for (at::Tensor &sum : squareSums)
      sum.zero_();
    for (size_t i = 0; i < units.size(); ++i)
      for (const Squares &range : squares[i])
        addSquaresOf(static_cast<int>(i), range, squareSums[range.set]);
  }
  for (size_t set = 0; set < squareSums.size(); ++set)
    if (squareGroups[set])
      squareGroups[set]->allReduce(squareSums[set]).wait();
}

void Executor::skipNotFinite(bool skips) {
  skipsNotFinite = skips;
  late = stepsOnDevice();
}

/// torch.nn.utils.clip_grad_norm_, after GradScaler.unscale_.
void Executor::clipGradients() {
  sumSquares();
  if (late && !job.offload.states)
    clipOnDevice();
  else
    clipOnHost();
}

void Executor::clipOnHost() {
  StepResult &result = steps.back().result;
  double total = 0;
  for (const at::Tensor &sum : squareSums)
    total += sum.item<double>();
  const double scale = lossScaler.scale();
  const double norm = std::sqrt(total) / scale;
  result.gradNorm = norm;
  result.hasGradNorm = true;
  if (leavesOut() && !std::isfinite(norm)) {
    result.skipped = true;
    return;
  }
  double factor = 1.0 / scale;
  const double limit = job.job.optimizer.maxGradNorm;
  if (limit > 0) {
    const double clip = limit / (norm + 1e-6);
    factor *= clip < 1.0 || std::isnan(clip) ? clip : 1.0;
  }
  if (factor == 1) // a pass over all gradients that would change none
    return;
  coefficient.fill_(factor);
  for (size_t i = 0; i < units.size(); ++i)
    if (trains(static_cast<int>(i)))
      scaleBy(gradientOf(static_cast<int>(i)), coefficient);
}

void Executor::clipOnDevice() {
  steps.back().result.hasGradNorm = true;
  at::Tensor total = squareSums.front();
  for (size_t set = 1; set < squareSums.size(); ++set)
    total = total.add(squareSums[set]);
  const bool checks = leavesOut();
  deviceScaler.decide(total, job.job.optimizer.maxGradNorm, checks);
  numbers.select(0, 1).copy_(deviceScaler.norm());
  if (checks)
    numbers.select(0, 2).copy_(deviceScaler.leftOut());
  if (optimizer->isSteered()) {
    optimizer->steer(deviceScaler.divisor(),
                     checks ? deviceScaler.leftOut() : at::Tensor());
    return;
  }
  for (size_t i = 0; i < units.size(); ++i)
    if (trains(static_cast<int>(i)))
      units[i]
          ->buffer(plan::Role::ShardGradient)
          .flat.div_(deviceScaler.divisor());
}

} // namespace accel::run
