//===- RankTimeline.cpp - The streams of one rank -------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Simulate/RankTimeline.h"

#include "runtime/plan/Chunks.h"

#include <algorithm>
#include <numeric>

namespace accel {

using namespace plan;

RankTimeline::Frame::Frame(const TimeModel &model, const Program &program)
    : program(&program) {
  int timepoints = 0;
  for (const ProgramInstruction &instruction : program.instructions)
    timepoints = std::max(timepoints, instruction.timepoint + 1);
  flights.resize(timepoints);
  if (!model.plan.offload.onDisk())
    return;
  std::vector<DriveQueue::Record> records;
  for (const ProgramInstruction &instruction : program.instructions)
    if (instruction.kind == ProgramInstructionKind::Optimizer)
      records.push_back({model.units[instruction.unit].diskRead,
                         model.units[instruction.unit].diskWrite});
  drive.emplace(std::move(records), model.plan.offload.disk,
                diskBuffers(model.plan, program.stage));
}

RankTimeline::RankTimeline(const TimeModel &model, const StepEnd *before)
    : model(model), onHost(model.plan.units.size()),
      updated(model.plan.units.size()) {
  if (!before)
    return;
  clock[static_cast<int>(Stream::Gather)] = -before->gathers;
  wire = -before->wire;
  freed = -before->freed;
  for (size_t u = 0; u < updated.size(); ++u)
    updated[u] = -before->updated[u];
}

double RankTimeline::end() const {
  double last = *std::max_element(clock.begin(), clock.end());
  for (const auto &[channel, at] : messages)
    last = std::max(last, at);
  return last;
}

void RankTimeline::work(Frame &frame, double seconds) {
  compute += seconds;
  frame.time.computeSeconds += seconds;
}

void RankTimeline::call(Frame &frame, const ProgramInstruction &instruction) {
  work(frame, model.functions[instruction.function]);
  // What the function's operators wait for.
  const double exchanges = model.exchanges[instruction.function];
  compute += exchanges;
  frame.time.exposedSeconds += exchanges;
  frame.time.exchangeSeconds += exchanges;
}

void RankTimeline::update(Frame &frame, const ProgramInstruction &instruction,
                          TimelineEvent &event) {
  const TimeModel::UnitTimes &times = model.units[instruction.unit];
  double &own = clockOf(instruction);
  if (model.plan.offload.states) {
    // The host works while the device does what it was given before; what
    // follows on the device reads the updated shard.
    event.begin = std::max(own, onHost[instruction.unit]);
    if (frame.drive)
      event.begin = frame.drive->begin(event.begin);
    own = event.begin + times.update;
    double &in = clock[static_cast<int>(Stream::HostIn)];
    in = std::max(in, own) + times.hostIn;
    if (frame.drive)
      own = frame.drive->end(own, in);
    event.waited = std::max(0.0, in - compute);
    compute += event.waited;
    event.exposed = event.waited;
  } else {
    work(frame, times.update);
    // Sums that the update itself waits for.
    compute += times.updateWire;
    event.exposed = times.updateWire;
  }
  updated[instruction.unit] = compute;
}

void RankTimeline::norm(Frame &frame, const ProgramInstruction &instruction) {
  const double seconds = model.gradNorms[frame.program->stage];
  if (!model.plan.offload.states) {
    work(frame, seconds);
    return;
  }
  // As gradients arrive; those of other programs are there before.
  double &own = clockOf(instruction);
  std::vector<size_t> order(model.units.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return onHost[a] < onHost[b]; });
  for (size_t u : order)
    own = std::max(own, onHost[u]) + model.units[u].hostNorm;
  own += seconds;
  // The norm is known: gradients are read and written.
  if (model.plan.job.optimizer.maxGradNorm > 0 || model.plan.job.lossScaling)
    for (const TimeModel::UnitTimes &unit : model.units)
      own += 2 * unit.hostNorm;
}

void RankTimeline::collective(Frame &frame,
                              const ProgramInstruction &instruction,
                              TimelineEvent &event) {
  const TimeModel::UnitTimes &times = model.units[instruction.unit];
  double &own = clockOf(instruction);
  Flight flight;
  double transfer = 0, before = 0;
  if (instruction.kind == ProgramInstructionKind::AllGather) {
    transfer = times.gather;
    before = times.fill;
  } else if (instruction.kind == ProgramInstructionKind::ReduceScatter) {
    transfer = times.scatter;
    flight.finish = model.finishSeconds(instruction);
  } else {
    transfer = times.allReduce;
    before = times.castForWire;
    flight.finish = times.castForWire;
  }
  // On CPUs the thread that computes also copies.
  if (model.target.kind == TargetKind::Cpu) {
    work(frame, before);
    before = 0;
  }
  // A start waits for what was computed before it, and for its turn; what
  // every rank keeps may have been read until now.
  const bool gathers = instruction.kind == ProgramInstructionKind::AllGather &&
                       model.gathersOnStream() &&
                       !model.plan.units[instruction.unit].whole;
  event.begin = std::max(
      own, gathers ? std::max(freed, updated[instruction.unit]) : compute);
  const double ready = event.begin + before;
  flight.end = ready;
  if (transfer > 0) {
    // The part that cannot be hidden is taken from the computation.
    const double taken = transfer * (1 - model.target.overlap);
    compute += taken;
    event.exposed = taken;
    flight.end = std::max(ready, wire) + transfer;
    wire = flight.end;
  }
  own = std::max(own, flight.end);
  event.end = flight.end;
  frame.flights[instruction.timepoint] = flight;
}

void RankTimeline::await(Frame &frame, const ProgramInstruction &instruction,
                         TimelineEvent &event) {
  const Flight &flight = frame.flights[instruction.timepoint];
  double &own = clockOf(instruction);
  event.waited = std::max(0.0, flight.end - own);
  own += event.waited;
  event.begin = own;
  if (instruction.stream == Stream::Compute) {
    event.exposed = event.waited;
    work(frame, flight.finish);
  } else {
    own += flight.finish;
  }
}

TimelineEvent RankTimeline::take(Frame &frame, size_t index) {
  const Program &program = *frame.program;
  const ProgramInstruction &instruction = program.instructions[index];
  double &own = clockOf(instruction);
  TimelineEvent event{static_cast<int>(index), instruction.stream, own, own, 0};
  switch (instruction.kind) {
  case ProgramInstructionKind::Free:
    if (instruction.unit >= 0 && instruction.role == Role::Gathered)
      freed = compute;
    break;
  case ProgramInstructionKind::Alloc:
  case ProgramInstructionKind::Pause:
    break;
  case ProgramInstructionKind::Call:
    call(frame, instruction);
    break;
  case ProgramInstructionKind::Offload:
  case ProgramInstructionKind::Fetch:
    event.begin = std::max(own, compute);
    own = event.end =
        event.begin + (instruction.unit >= 0
                           ? model.units[instruction.unit].hostOut
                           : model.copySeconds(program, instruction.inputs));
    if (instruction.unit >= 0)
      onHost[instruction.unit] = own;
    frame.flights[instruction.timepoint] = {own, 0};
    break;
  case ProgramInstructionKind::Optimizer:
    update(frame, instruction, event);
    break;
  case ProgramInstructionKind::GradNorm:
    norm(frame, instruction);
    break;
  case ProgramInstructionKind::Send:
  case ProgramInstructionKind::Receive:
    if (instruction.timepoint >= 0)
      frame.flights[instruction.timepoint] = {};
    else if (instruction.kind == ProgramInstructionKind::Send) // a copy
      work(frame, model.memorySeconds(
                      2.0 * static_cast<double>(denseBytes(
                                program.values[instruction.inputs[0]]))));
    break;
  case ProgramInstructionKind::AllGather:
  case ProgramInstructionKind::ReduceScatter:
  case ProgramInstructionKind::AllReduce:
    collective(frame, instruction, event);
    break;
  case ProgramInstructionKind::Await:
    await(frame, instruction, event);
    break;
  }
  event.end = std::max(event.end, own);
  frame.time.exposedSeconds += event.exposed;
  return event;
}

double RankTimeline::send(Frame &frame, const ProgramInstruction &instruction,
                          const std::string &channel) {
  double &own = messages[channel];
  own = std::max(own, compute) +
        model.sendSeconds(
            denseBytes(frame.program->values[instruction.inputs[0]]));
  frame.flights[instruction.timepoint] = {own, 0, /*isMessage=*/true};
  return own;
}

void RankTimeline::receive(const std::string &channel, double arrival) {
  double &own = messages[channel];
  own = std::max({own, compute, arrival});
  compute = own;
}

void RankTimeline::finish(Frame &frame) const {
  ProgramTime &time = frame.time;
  time.seconds = end();
  time.exposedSeconds += time.seconds - compute;
  // What was before the program is of no importance behind it.
  auto since = [&](double at) { return time.seconds - std::max(0.0, at); };
  time.end.gathers = since(clock[static_cast<int>(Stream::Gather)]);
  time.end.wire = since(wire);
  time.end.freed = since(freed);
  for (double at : updated)
    time.end.updated.push_back(since(at));
}

} // namespace accel
