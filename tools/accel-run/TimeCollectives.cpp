//===- TimeCollectives.cpp - Collectives and messages alone ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-run/TimeCollectives.h"

#include "runtime/plan/InstructionKey.h"
#include "runtime/plan/Mesh.h"
#include "runtime/tensors/Tensors.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <optional>

namespace accel::run {

std::string collectiveOf(const plan::Plan &plan,
                         const plan::ProgramInstruction &instruction) {
  const bool gathers =
      instruction.kind == plan::ProgramInstructionKind::AllGather;
  if (!gathers &&
      instruction.kind != plan::ProgramInstructionKind::ReduceScatter)
    return "";
  const plan::Mesh mesh{plan.axes};
  const plan::Unit &unit = plan.units[instruction.unit];
  return plan::collectiveKey(
      instruction.kind,
      mesh.group(mesh.set(instruction.axes), plan.ranks()).ranks,
      unit.padded * plan::itemSize(gathers ? unit.gather : unit.reduce));
}

namespace {

/// Runs of a collective.
constexpr int warm = 2, most = 20;

/// Seconds of `run`, as often on every rank: those of the fastest eighth.
template <typename Run> double timed(Device &device, Run &&run) {
  for (int i = 0; i < warm; ++i)
    run();
  InstructionTimes times(1);
  std::vector<double> seconds;
  for (int i = 0; i < most; ++i) {
    InstructionTime time;
    time.beginMark = device.mark();
    run();
    time.endMark = device.mark();
    times[0] = {time};
    device.resolve(times);
    seconds.push_back(times[0][0].end - times[0][0].begin);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 8];
}

/// Seconds of one collective alone.
std::optional<double> secondsOf(const plan::Plan &plan, const Timed &each,
                                Device &device, Groups &groups) {
  const plan::ProgramInstruction &instruction = *each.first;
  const bool gathers =
      instruction.kind == plan::ProgramInstructionKind::AllGather;
  Communicator *group =
      groups.over(instruction.axes, gathers ? "gather" : "reduce");
  if (!group)
    return std::nullopt;
  const plan::Unit &unit = plan.units[instruction.unit];
  const auto options =
      at::TensorOptions(scalarType(gathers ? unit.gather : unit.reduce))
          .device(device.device());
  at::Tensor whole = at::empty({unit.padded}, options);
  whole.fill_(1);
  const int64_t length = unit.padded / group->size();
  at::Tensor piece = whole.narrow(0, group->rank() * length, length);
  at::Tensor received = at::empty({unit.padded - length}, options);
  const bool exchanges = instruction.algorithm == "all_to_all";
  return timed(device, [&] {
    if (gathers)
      group->allGather(whole, piece).wait();
    else if (exchanges)
      group->allToAll(received, whole).wait();
    else
      group->reduceScatter(piece, whole).wait();
  });
}

/// Seconds of a message from the first stage to the second: half of what it
/// takes there and back.
double messageSeconds(int64_t bytes, Device &device, Groups &groups) {
  Communicator *forward = groups.over({plan::pipelineAxis}, "forward");
  Communicator *backward = groups.over({plan::pipelineAxis}, "backward");
  const int stage = forward->rank();
  at::Tensor message = at::empty(
      {bytes}, at::TensorOptions(at::ScalarType::Byte).device(device.device()));
  message.fill_(1);
  return timed(device,
               [&] {
                 if (stage == 0) {
                   forward->send(message, 1).wait();
                   backward->receive(message, 1).wait();
                 } else {
                   forward->receive(message, 0).wait();
                   backward->send(message, 0).wait();
                 }
               }) /
         2;
}

} // namespace

Collectives collectivesOf(const plan::Plan &plan) {
  Collectives result;
  for (int stage = 0; stage < plan.numStages(); ++stage)
    for (const auto &[index, repeat] : plan.stepsOf(stage)) {
      const plan::Program &program = plan.programs[index];
      for (const plan::ProgramInstruction &instruction : program.instructions) {
        const std::string key = collectiveOf(plan, instruction);
        if (key.empty())
          continue;
        std::string name = key;
        for (const std::string &axis : instruction.axes)
          name += " " + axis;
        const plan::Unit &unit = plan.units[instruction.unit];
        const bool gathers =
            instruction.kind == plan::ProgramInstructionKind::AllGather;
        Timed &timed = result[name];
        if (!timed.first)
          timed = {&instruction,
                   key,
                   unit.padded *
                       plan::itemSize(gathers ? unit.gather : unit.reduce),
                   {}};
        timed.stages.insert(stage);
      }
      if (const int64_t bytes = plan::sentBytes(program)) {
        const std::string key =
            plan::collectiveKey(plan::ProgramInstructionKind::Send, 2, bytes);
        result[key] = {nullptr, key, bytes, {0, 1}};
      }
    }
  return result;
}

void timeCollectives(const plan::Plan &plan, Device &device, Groups &groups,
                     Collectives &collectives) {
  const int stage = groups.mesh().position({plan::pipelineAxis});
  if (!plan.stages.empty()) // all ranks connect
    for (const char *way : {"forward", "backward"})
      groups.over({plan::pipelineAxis}, way);
  for (auto &[name, timed] : collectives) {
    if (!timed.first)
      groups.barrier();
    if (!timed.stages.count(stage))
      continue;
    timed.seconds = timed.first
                        ? secondsOf(plan, timed, device, groups).value_or(-1)
                        : messageSeconds(timed.bytes, device, groups);
  }
  groups.barrier();
}

} // namespace accel::run
