//===- ProgramRunner.cpp - Runs a program of the plan ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/execute/ProgramRunner.h"

#include "runtime/collectives/Progress.h"
#include "runtime/execute/Executor.h"
#include "runtime/plan/Chunks.h"
#include "runtime/tensors/Kernels.h"
#include "runtime/tensors/Tensors.h"

#include <ATen/ops/empty.h>
#include <ATen/record_function.h>

#include <algorithm>

namespace accel::run {

using plan::ProgramInstructionKind;
using plan::Role;

ProgramRunner::ProgramRunner(Executor &executor, const plan::Program &program)
    : executor(executor), source(program), parts(plan::partsOf(program)),
      hostValues(program) {
  for (const plan::ProgramInstruction &instruction : program.instructions)
    timepoints =
        std::max(timepoints, static_cast<size_t>(instruction.timepoint + 1));
  instructions.reserve(program.instructions.size());
  for (const plan::ProgramInstruction &instruction : program.instructions)
    instructions.push_back(compile(instruction));
}

/// What no call of the program writes before it is read: alignment gaps, the
/// tail, and parameters without a gradient.
std::vector<std::pair<int64_t, int64_t>>
ProgramRunner::gapsOf(const plan::ProgramInstruction &alloc) const {
  const plan::Unit &unit = executor.plan().units[alloc.unit];
  if (alloc.role != executor.unit(alloc.unit).gradientRole())
    return {};
  std::vector<std::pair<int64_t, int64_t>> written;
  for (const plan::ProgramInstruction &instruction : source.instructions)
    for (const plan::GradRef &gradient : instruction.gradients)
      if (gradient.unit == alloc.unit && !gradient.accumulate) {
        const plan::Parameter &p =
            executor.plan().parameters[gradient.parameter];
        written.emplace_back(p.offset,
                             p.offset + plan::ownNumel(executor.plan(), p));
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

ProgramRunner::Compiled
ProgramRunner::compile(const plan::ProgramInstruction &instruction) {
  Compiled result;
  result.kind = instruction.kind;
  result.stream = instruction.stream;
  result.role = instruction.role;
  result.timepoint = instruction.timepoint;
  result.accumulate = instruction.accumulate;
  result.source = &instruction;
  result.label = source.name + "/" +
                 std::to_string(&instruction - source.instructions.data()) +
                 " " + plan::toString(instruction.kind);
  if (instruction.unit >= 0)
    result.label += " " + executor.plan().units[instruction.unit].name;
  else if (!instruction.where.empty())
    result.label += " " + instruction.where;
  if (instruction.unit >= 0)
    result.unit = &executor.unit(instruction.unit);
  switch (instruction.kind) {
  case ProgramInstructionKind::Alloc:
    result.zeros = gapsOf(instruction);
    break;
  case ProgramInstructionKind::ReduceScatter:
    if (instruction.algorithm != "direct" &&
        instruction.algorithm != "all_to_all")
      throw PlanError("program '" + source.name +
                      "': unknown reduce-scatter algorithm '" +
                      instruction.algorithm + "'");
    result.allToAll = instruction.algorithm == "all_to_all";
    [[fallthrough]];
  case ProgramInstructionKind::AllGather:
    result.group = executor.groups().over(
        instruction.axes,
        instruction.stream == plan::Stream::Gather ? "gather" : "reduce");
    break;
  case ProgramInstructionKind::AllReduce:
    result.group = executor.replicasOf(instruction.unit);
    break;
  case ProgramInstructionKind::Call: {
    result.function = &executor.function(instruction.function);
    for (const plan::ParamRef &ref : instruction.params)
      result.params.push_back(
          executor.unit(ref.unit).parameterView(ref.parameter));
    for (const plan::GradRef &ref : instruction.gradients)
      result.gradients.push_back(
          executor.unit(ref.unit).gradientView(ref.parameter));
    break;
  }
  case ProgramInstructionKind::Send:
  case ProgramInstructionKind::Receive: {
    result.stays = plan::staysInStage(executor.plan(), source, instruction);
    if (result.stays)
      break;
    // A message goes up or down the stages, each way in a group of its own, so
    // that none waits for one of the other way, which those of further chunks
    // may go.
    const bool sends = instruction.kind == ProgramInstructionKind::Send;
    const plan::ChunkPlace other =
        plan::placeBeside(executor.plan(), source,
                          sends ? instruction.shift : -instruction.shift);
    const std::string way = instruction.shift > 0 ? "forward" : "backward";
    result.group = executor.groups().over({plan::pipelineAxis},
                                          way + (other.wraps ? " around" : ""));
    result.peer = other.stage;
    break;
  }
  default:
    break;
  }
  return result;
}

void ProgramRunner::call(const Compiled &instruction) {
  FunctionRunner &function = *instruction.function;
  const plan::ProgramInstruction &source = *instruction.source;
  std::vector<at::Tensor> &values = frame->values;
  for (size_t i = 0; i < source.inputs.size(); ++i)
    function.input(i) = values[source.inputs[i]];
  for (size_t i = 0; i < source.inputs.size(); ++i)
    if (i < source.consumed.size() && source.consumed[i])
      values[source.inputs[i]].reset();
  Draw draw = executor.draw();
  draw.call = source.draw;
  std::string *notFinite = executor.notFinite();
  const bool known = !notFinite || !notFinite->empty();
  try {
    function.run(instruction.params, instruction.gradients, executor.ownPeak(),
                 draw, notFinite);
  } catch (const RowsError &error) {
    throw PlanError(source.where + ": " + error.what());
  }
  if (!known && !notFinite->empty())
    *notFinite = instruction.label + ": " + *notFinite;
  for (size_t i = 0; i < source.outputs.size(); ++i)
    if (source.outputs[i] >= 0)
      values[source.outputs[i]] = function.output(i);
  function.clear();
}

void ProgramRunner::reduceScatter(const Compiled &instruction) {
  if (!instruction.group)
    return; // finishReduce casts or adds
  at::Tensor &gradient = instruction.unit->buffer(Role::Gradient).flat;
  if (instruction.allToAll) {
    frame->inFlight[instruction.timepoint].pending =
        instruction.group->allToAll(
            instruction.unit->buffer(Role::Receive).flat, gradient);
    return;
  }
  // Straight into the shard gradient where that is the sum itself, else in
  // place, into this rank's piece.
  at::Tensor &target = instruction.unit->buffer(Role::ShardGradient).flat;
  const bool straight =
      !instruction.accumulate && target.scalar_type() == gradient.scalar_type();
  frame->inFlight[instruction.timepoint].pending =
      instruction.group->reduceScatter(
          straight ? target : instruction.unit->ownPiece(Role::Gradient),
          gradient);
}

/// What is left of a reduction when the data is here.
void ProgramRunner::finishReduce(const Compiled &instruction) {
  const at::Tensor &target = instruction.unit->buffer(Role::ShardGradient).flat;
  if (instruction.group && instruction.allToAll) {
    // By rank; this rank's own piece was not sent anywhere.
    const at::Tensor &received = instruction.unit->buffer(Role::Receive).flat;
    const int64_t length = target.numel();
    std::vector<at::Tensor> slices;
    for (int from = 0; from < instruction.group->size(); ++from)
      slices.push_back(
          from == instruction.group->rank()
              ? instruction.unit->ownPiece(Role::Gradient)
              : received.narrow(
                    0, (from - (from > instruction.group->rank())) * length,
                    length));
    sumSlices(target, slices, instruction.accumulate);
    return;
  }
  const at::Tensor &piece = instruction.unit->ownPiece(Role::Gradient);
  const bool straight = instruction.group && !instruction.accumulate &&
                        target.scalar_type() == piece.scalar_type();
  if (!straight)
    sumSlices(target, piece, instruction.accumulate);
}

void ProgramRunner::allReduce(const Compiled &instruction) {
  const bool casts = !instruction.unit->unit().hook.empty();
  at::Tensor &shard = instruction.unit->buffer(Role::ShardGradient).flat;
  at::Tensor &summed =
      casts ? instruction.unit->buffer(Role::Receive).flat : shard;
  if (casts)
    summed.copy_(shard, /*non_blocking=*/true);
  if (instruction.group)
    frame->inFlight[instruction.timepoint].pending =
        instruction.group->allReduce(summed);
}

void ProgramRunner::send(const Compiled &instruction) {
  frame->inFlight[instruction.timepoint].pending = instruction.group->send(
      frame->values[instruction.source->inputs[0]], instruction.peer);
}

void ProgramRunner::handOver(const Compiled &instruction) {
  const at::Tensor &value = frame->values[instruction.source->inputs[0]];
  at::Tensor copy = at::empty(value.sizes(), value.options());
  executor.ownPeak().sample(executor.device());
  copy.copy_(value, /*non_blocking=*/true);
  executor.handed(instruction.source->shift).push_back(std::move(copy));
}

void ProgramRunner::receive(const Compiled &instruction) {
  const int index = instruction.source->outputs[0];
  const plan::Value &value = source.values[index];
  at::Tensor &tensor = frame->values[index];
  if (instruction.stays) {
    std::deque<at::Tensor> &handed = executor.handed(instruction.source->shift);
    tensor = std::move(handed.front());
    handed.pop_front();
    return;
  }
  tensor = at::empty(value.shape, at::TensorOptions(scalarType(value.dtype))
                                      .device(executor.device().device()));
  executor.ownPeak().sample(executor.device());
  Allocator::Foreign libraries;
  instruction.group->receive(tensor, instruction.peer).wait();
}

int ProgramRunner::timepoint(int own) const {
  return frame->number * executor.timepoints() + own;
}

void ProgramRunner::await(int point) {
  InFlight &flight = frame->inFlight[point];
  flight.pending.wait();
  executor.device().await(timepoint(point));
  if (flight.start->kind == ProgramInstructionKind::ReduceScatter)
    finishReduce(*flight.start);
  else if (flight.start->kind == ProgramInstructionKind::AllReduce &&
           !flight.start->unit->unit().hook.empty())
    flight.start->unit->buffer(Role::ShardGradient)
        .flat.copy_(flight.start->unit->buffer(Role::Receive).flat);
  flight.start = nullptr;
}

void ProgramRunner::execute(const Compiled &instruction) {
  Progress::get().enter(instruction.label.c_str());
  // Free unless a profiler listens.
  RECORD_USER_SCOPE(instruction.label.c_str());
  switch (instruction.kind) {
  case ProgramInstructionKind::Alloc: {
    FlatBuffer &buffer = instruction.unit->buffer(instruction.role);
    buffer.allocate();
    executor.ownPeak().sample(executor.device());
    for (auto [begin, end] : instruction.zeros)
      buffer.zero(begin, end);
    return;
  }
  case ProgramInstructionKind::Free:
    if (instruction.unit) {
      if (const plan::Stream stream =
              plan::memoryOf(instruction.unit->unit(), instruction.role);
          stream != plan::Stream::Compute)
        executor.device().releases(stream);
      instruction.unit->buffer(instruction.role).free();
    }
    for (int value : instruction.source->values)
      frame->values[value].reset();
    return;
  case ProgramInstructionKind::Receive:
    return receive(instruction);
  case ProgramInstructionKind::Pause:
    return;
  case ProgramInstructionKind::Send:
    if (instruction.stays)
      return handOver(instruction);
    [[fallthrough]];
  case ProgramInstructionKind::AllGather:
  case ProgramInstructionKind::ReduceScatter:
  case ProgramInstructionKind::AllReduce:
  case ProgramInstructionKind::Offload:
  case ProgramInstructionKind::Fetch: {
    Device &device = executor.device();
    if (instruction.kind == ProgramInstructionKind::Fetch) {
      hostValues.allocate(*instruction.source, frame->values, device.device());
      executor.ownPeak().sample(device);
    }
    Allocator::Foreign libraries;
    frame->inFlight[instruction.timepoint].start = &instruction;
    if (instruction.kind == ProgramInstructionKind::AllGather)
      executor.enterGather(instruction.source->unit, instruction.stream);
    else
      device.enter(instruction.stream);
    if (timing)
      timing->streamBeginMark = device.mark();
    if (instruction.kind == ProgramInstructionKind::AllGather)
      frame->inFlight[instruction.timepoint].pending =
          instruction.unit->gather(instruction.group);
    else if (instruction.kind == ProgramInstructionKind::ReduceScatter)
      reduceScatter(instruction);
    else if (instruction.kind == ProgramInstructionKind::Send)
      send(instruction);
    else if (instruction.kind == ProgramInstructionKind::Fetch)
      hostValues.fetch(*instruction.source, frame->values,
                       executor.hostMemory());
    else if (instruction.kind == ProgramInstructionKind::Offload &&
             !instruction.unit)
      hostValues.offload(*instruction.source, frame->values,
                         executor.hostMemory());
    else if (instruction.kind == ProgramInstructionKind::Offload)
      instruction.unit->hostGradient().copy_(
          instruction.unit->buffer(Role::ShardGradient).flat,
          /*non_blocking=*/true);
    else
      allReduce(instruction);
    if (timing)
      timing->streamEndMark = device.mark();
    device.leave(timepoint(instruction.timepoint));
    if (instruction.kind == ProgramInstructionKind::Offload && instruction.unit)
      executor.offloads(instruction.source->unit,
                        timepoint(instruction.timepoint));
    else if (instruction.kind == ProgramInstructionKind::AllGather)
      executor.gathers(instruction.source->unit,
                       timepoint(instruction.timepoint));
    return;
  }
  case ProgramInstructionKind::Await:
    return await(instruction.timepoint);
  case ProgramInstructionKind::Call:
    return call(instruction);
  case ProgramInstructionKind::GradNorm:
    return executor.clipGradients();
  case ProgramInstructionKind::Optimizer:
    return executor.update(instruction.source->unit, timing);
  }
}

ProgramRunner::Frame ProgramRunner::begin(std::vector<at::Tensor> inputs) {
  Frame result;
  result.values.resize(source.values.size());
  result.inFlight.resize(timepoints);
  for (size_t i = 0; i < inputs.size(); ++i)
    result.values[source.inputs[i]] = std::move(inputs[i]);
  executor.ownPeak().sample(executor.device());
  return result;
}

void ProgramRunner::runPart(Frame &of, size_t from, size_t to,
                            std::vector<InstructionTime> *times) {
  frame = &of;
  for (size_t i = from; i < to; ++i) {
    if (!times) {
      execute(instructions[i]);
      continue;
    }
    InstructionTime time;
    timing = &time;
    time.instruction = static_cast<int>(i);
    // On CPUs the main thread does both, by the same clock.
    const bool onHost = instructions[i].stream == plan::Stream::Host &&
                        !executor.device().device().is_cpu();
    time.beginMark = executor.device().mark();
    if (onHost)
      time.hostBegin = hostSeconds();
    execute(instructions[i]);
    if (onHost)
      time.hostEnd = hostSeconds();
    time.endMark = executor.device().mark();
    time.bytes = executor.device().ownBytes();
    timing = nullptr;
    times->push_back(time);
  }
  frame = nullptr;
}

ProgramResults ProgramRunner::finish(Frame &of) {
  ProgramResults results;
  if (source.loss >= 0)
    results.loss = of.values[source.loss];
  if (source.predictions >= 0)
    results.predictions = of.values[source.predictions];
  of.values.clear();
  return results;
}

ProgramResults ProgramRunner::run(std::vector<at::Tensor> inputs,
                                  std::vector<InstructionTime> *times) {
  Frame whole = begin(std::move(inputs));
  runPart(whole, 0, instructions.size(), times);
  return finish(whole);
}

ProgramRunner::Frame ProgramRunner::start(std::vector<at::Tensor> inputs,
                                          int number) {
  Frame result = begin(std::move(inputs));
  result.number = number;
  return result;
}

void ProgramRunner::run(Frame &of, size_t part,
                        std::vector<InstructionTime> *times) {
  runPart(of, parts[part], parts[part + 1], times);
}

} // namespace accel::run
