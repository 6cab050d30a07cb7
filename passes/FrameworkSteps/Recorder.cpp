//===- Recorder.cpp - The tensors of a step, one by one -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/FrameworkSteps/Engine.h"

namespace accel {

using replay::Action;

int Recorder::make(int64_t bytes, Pool pool) {
  if (bytes <= 0)
    return -1;
  const int tensor = result.tensors++;
  result.events.push_back(
      {Action::Allocate, static_cast<int>(pool), tensor, bytes});
  return tensor;
}

void Recorder::drop(int &tensor) {
  if (tensor >= 0)
    result.events.push_back({Action::Free, 0, tensor, 0});
  tensor = -1;
}

void Recorder::allocate(Holding holding, int64_t bytes, Pool pool,
                        Parts parts) {
  if (silent || bytes == 0)
    return;
  if (defersStates && holding == Holding::Optimizer) {
    unmadeStates.push_back(
        {bytes, pool, parts ? *parts : std::vector<int64_t>{bytes}});
    return;
  }
  Group group;
  if (parts)
    for (int64_t part : *parts)
      group.push_back(make(part, pool));
  else
    group.push_back(make(bytes, pool));
  groups[{static_cast<int>(holding), static_cast<int>(pool), bytes}].push_back(
      std::move(group));
}

void Recorder::makeStates() {
  if (!defersStates)
    return;
  defersStates = false;
  for (const State &state : unmadeStates)
    allocate(Holding::Optimizer, state.bytes, state.pool, &state.parts);
  unmadeStates.clear();
}

Recorder::Group Recorder::take(Holding holding, int64_t bytes, Pool pool) {
  auto &known =
      groups[{static_cast<int>(holding), static_cast<int>(pool), bytes}];
  if (known.empty()) {
    if (wrong.empty())
      wrong = std::to_string(bytes) + " bytes of " + toString(holding) +
              " are freed that were never allocated as one";
    return {};
  }
  Group group = std::move(known.back());
  known.pop_back();
  return group;
}

void Recorder::free(Holding holding, int64_t bytes, Pool pool) {
  if (silent || bytes == 0)
    return;
  for (int tensor : take(holding, bytes, pool))
    drop(tensor);
}

void Recorder::deferFree(Holding holding, int64_t bytes, Pool pool) {
  if (silent || bytes == 0)
    return;
  for (int tensor : take(holding, bytes, pool)) {
    result.events.push_back({Action::Park, 0, tensor, 0});
    deferred.push_back(tensor);
  }
}

void Recorder::settle(size_t but) {
  while (marks.size() > but) {
    const int count = marks.front();
    marks.pop_front();
    for (int i = 0; i < count; ++i) {
      result.events.push_back({Action::Settle, 0, deferred.front(), 0});
      deferred.pop_front();
    }
    for (int &mark : marks)
      mark -= count;
  }
}

void Recorder::endStep() {
  result.events.push_back({Action::StepEnd, 0, -1, 0});
}

} // namespace accel
