//===- ProgramRunner.cpp - Runs a program of the plan ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/execute/ProgramRunner.h"

#include "runtime/collectives/Progress.h"
#include "runtime/execute/Executor.h"
#include "runtime/tensors/Kernels.h"

#include <ATen/record_function.h>

#include <algorithm>

namespace accel::run {

using plan::Role;
using plan::StepKind;

ProgramRunner::ProgramRunner(Executor &executor, const plan::Program &program)
    : executor(executor), source(program), values(program.values.size()) {
  int timepoints = 0;
  for (const plan::Step &step : program.steps)
    timepoints = std::max(timepoints, step.timepoint + 1);
  inFlight.resize(timepoints);
  steps.reserve(program.steps.size());
  for (const plan::Step &step : program.steps)
    steps.push_back(compile(step));
}

/// What no call of the program writes before it is read: alignment gaps, the
/// tail, and parameters without a gradient.
std::vector<std::pair<int64_t, int64_t>>
ProgramRunner::gapsOf(const plan::Step &alloc) const {
  const plan::Unit &unit = executor.plan().units[alloc.unit];
  if (alloc.role != executor.unit(alloc.unit).gradientRole())
    return {};
  std::vector<std::pair<int64_t, int64_t>> written;
  for (const plan::Step &step : source.steps)
    for (const plan::GradRef &gradient : step.gradients)
      if (gradient.unit == alloc.unit && !gradient.accumulate) {
        const plan::Parameter &p =
            executor.plan().parameters[gradient.parameter];
        written.emplace_back(p.offset, p.offset + p.numel());
      }
  std::sort(written.begin(), written.end());
  std::vector<std::pair<int64_t, int64_t>> gaps;
  int64_t at = 0;
  for (auto [begin, end] : written) {
    if (begin > at)
      gaps.emplace_back(at, begin);
    at = std::max(at, end);
  }
  if (at < unit.padded)
    gaps.emplace_back(at, unit.padded);
  return gaps;
}

ProgramRunner::Compiled ProgramRunner::compile(const plan::Step &step) {
  Compiled result;
  result.kind = step.kind;
  result.stream = step.stream;
  result.role = step.role;
  result.timepoint = step.timepoint;
  result.accumulate = step.accumulate;
  result.step = &step;
  result.label = source.name + "/" +
                 std::to_string(&step - source.steps.data()) + " " +
                 plan::toString(step.kind);
  if (step.unit >= 0)
    result.label += " " + executor.plan().units[step.unit].name;
  else if (!step.where.empty())
    result.label += " " + step.where;
  if (step.unit >= 0)
    result.unit = &executor.unit(step.unit);
  switch (step.kind) {
  case StepKind::Alloc:
    result.zeros = gapsOf(step);
    break;
  case StepKind::ReduceScatter:
    if (step.algorithm != "direct" && step.algorithm != "all_to_all")
      throw PlanError("program '" + source.name +
                      "': unknown reduce-scatter algorithm '" + step.algorithm +
                      "'");
    result.allToAll = step.algorithm == "all_to_all";
    [[fallthrough]];
  case StepKind::AllGather:
  case StepKind::AllReduce:
    result.group = executor.groups().over(
        step.axes, step.stream == plan::Stream::Gather ? "gather" : "reduce");
    break;
  case StepKind::Call: {
    result.function = &executor.function(step.function);
    for (const plan::ParamRef &ref : step.params)
      result.params.push_back(
          executor.unit(ref.unit).parameterView(ref.parameter));
    for (const plan::GradRef &ref : step.gradients)
      result.gradients.push_back(
          executor.unit(ref.unit).gradientView(ref.parameter));
    break;
  }
  default:
    break;
  }
  return result;
}

void ProgramRunner::call(const Compiled &step) {
  FunctionRunner &function = *step.function;
  const plan::Step &source = *step.step;
  for (size_t i = 0; i < source.inputs.size(); ++i)
    function.input(i) = values[source.inputs[i]];
  for (size_t i = 0; i < source.inputs.size(); ++i)
    if (i < source.consumed.size() && source.consumed[i])
      values[source.inputs[i]].reset();
  Draw draw = executor.draw();
  draw.call = source.draw;
  std::string *notFinite = executor.notFinite();
  const bool known = !notFinite || !notFinite->empty();
  function.run(step.params, step.gradients, executor.ownPeak(), draw,
               notFinite);
  if (!known && !notFinite->empty())
    *notFinite = step.label + ": " + *notFinite;
  for (size_t i = 0; i < source.outputs.size(); ++i)
    if (source.outputs[i] >= 0)
      values[source.outputs[i]] = function.output(i);
  function.clear();
}

void ProgramRunner::allGather(const Compiled &step) {
  at::Tensor &piece = step.unit->ownPiece(Role::Gathered);
  piece.copy_(step.unit->shard());
  if (step.group)
    inFlight[step.timepoint].pending =
        step.group->allGather(step.unit->buffer(Role::Gathered).flat, piece);
}

void ProgramRunner::reduceScatter(const Compiled &step) {
  if (!step.group)
    return; // finishReduce casts or adds
  at::Tensor &gradient = step.unit->buffer(Role::Gradient).flat;
  if (step.allToAll) {
    inFlight[step.timepoint].pending =
        step.group->allToAll(step.unit->buffer(Role::Receive).flat, gradient);
    return;
  }
  // Straight into the shard gradient where that is the sum itself, else in
  // place, into this rank's piece.
  at::Tensor &target = step.unit->buffer(Role::ShardGradient).flat;
  const bool straight =
      !step.accumulate && target.scalar_type() == gradient.scalar_type();
  inFlight[step.timepoint].pending = step.group->reduceScatter(
      straight ? target : step.unit->ownPiece(Role::Gradient), gradient);
}

/// What is left of a reduction when the data is here.
void ProgramRunner::finishReduce(const Compiled &step) {
  const at::Tensor &target = step.unit->buffer(Role::ShardGradient).flat;
  if (step.group && step.allToAll) {
    // By rank; this rank's own piece was not sent anywhere.
    const at::Tensor &received = step.unit->buffer(Role::Receive).flat;
    const int64_t length = target.numel();
    std::vector<at::Tensor> slices;
    for (int from = 0; from < step.group->size(); ++from)
      slices.push_back(
          from == step.group->rank()
              ? step.unit->ownPiece(Role::Gradient)
              : received.narrow(
                    0, (from - (from > step.group->rank())) * length, length));
    sumSlices(target, slices, step.accumulate);
    return;
  }
  const at::Tensor &piece = step.unit->ownPiece(Role::Gradient);
  const bool straight = step.group && !step.accumulate &&
                        target.scalar_type() == piece.scalar_type();
  if (!straight)
    sumSlices(target, piece, step.accumulate);
}

void ProgramRunner::await(int timepoint) {
  InFlight &flight = inFlight[timepoint];
  flight.pending.wait();
  executor.device().await(timepoint);
  if (flight.start->kind == StepKind::ReduceScatter)
    finishReduce(*flight.start);
  flight.start = nullptr;
}

void ProgramRunner::execute(const Compiled &step) {
  Progress::get().enter(step.label.c_str());
  // Free unless a profiler listens.
  RECORD_USER_SCOPE(step.label.c_str());
  switch (step.kind) {
  case StepKind::Alloc: {
    FlatBuffer &buffer = step.unit->buffer(step.role);
    buffer.allocate();
    executor.ownPeak().sample(executor.device());
    for (auto [begin, end] : step.zeros)
      buffer.zero(begin, end);
    return;
  }
  case StepKind::Free:
    if (step.unit)
      step.unit->buffer(step.role).free();
    for (int value : step.step->values)
      values[value].reset();
    return;
  case StepKind::AllGather:
  case StepKind::ReduceScatter:
  case StepKind::AllReduce: {
    Allocator::Foreign libraries;
    inFlight[step.timepoint].start = &step;
    Device &device = executor.device();
    device.enter(step.stream);
    if (timing)
      timing->streamBeginMark = device.mark();
    if (step.kind == StepKind::AllGather)
      allGather(step);
    else if (step.kind == StepKind::ReduceScatter)
      reduceScatter(step);
    else if (step.group)
      inFlight[step.timepoint].pending =
          step.group->allReduce(step.unit->buffer(Role::ShardGradient).flat);
    if (timing)
      timing->streamEndMark = device.mark();
    device.leave(step.timepoint);
    return;
  }
  case StepKind::Await:
    return await(step.timepoint);
  case StepKind::Call:
    return call(step);
  case StepKind::GradNorm:
    return executor.clipGradients();
  case StepKind::Optimizer:
    return executor.update(step.step->unit);
  }
}

at::Tensor ProgramRunner::run(std::vector<at::Tensor> inputs,
                              std::vector<StepTime> *times) {
  for (size_t i = 0; i < inputs.size(); ++i)
    values[source.inputs[i]] = std::move(inputs[i]);
  executor.ownPeak().sample(executor.device());
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!times) {
      execute(steps[i]);
      continue;
    }
    StepTime time;
    timing = &time;
    time.step = static_cast<int>(i);
    time.beginMark = executor.device().mark();
    execute(steps[i]);
    time.endMark = executor.device().mark();
    time.bytes = executor.device().ownBytes();
    timing = nullptr;
    times->push_back(time);
  }
  at::Tensor loss = source.loss >= 0 ? values[source.loss] : at::Tensor();
  for (at::Tensor &value : values)
    value.reset();
  return loss;
}

} // namespace accel::run
