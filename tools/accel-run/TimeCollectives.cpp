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

namespace {

/// What a unit's collective exchanges: of a gather or a reduction the whole
/// unit, of an all-reduce a shard.
struct Exchanged {
  plan::DType dtype;
  int64_t numel = 0;
  int64_t bytes() const { return numel * plan::itemSize(dtype); }
};

std::optional<Exchanged>
exchangedBy(const plan::Plan &plan,
            const plan::ProgramInstruction &instruction) {
  using Kind = plan::ProgramInstructionKind;
  if (instruction.unit < 0)
    return std::nullopt;
  const plan::Unit &unit = plan.units[instruction.unit];
  switch (instruction.kind) {
  case Kind::AllGather:
    return Exchanged{unit.gather, unit.padded};
  case Kind::ReduceScatter:
    return Exchanged{unit.reduce, unit.padded};
  case Kind::AllReduce:
    return Exchanged{unit.hook.empty() ? unit.storage : plan::hookDType(unit),
                     plan::shardNumel(plan, unit)};
  default:
    return std::nullopt;
  }
}

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
  const auto exchanged = exchangedBy(plan, instruction);
  if (!group || !exchanged)
    return std::nullopt;
  const auto options =
      at::TensorOptions(scalarType(exchanged->dtype)).device(device.device());
  at::Tensor whole = at::empty({exchanged->numel}, options);
  if (instruction.kind == plan::ProgramInstructionKind::AllReduce) {
    whole.fill_(0);
    return timed(device, [&] { group->allReduce(whole).wait(); });
  }
  whole.fill_(1);
  const int64_t length = exchanged->numel / group->size();
  at::Tensor piece = whole.narrow(0, group->rank() * length, length);
  at::Tensor received = at::empty({exchanged->numel - length}, options);
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

std::string collectiveOf(const plan::Plan &plan,
                         const plan::ProgramInstruction &instruction) {
  const auto exchanged = exchangedBy(plan, instruction);
  if (!exchanged)
    return "";
  const plan::Mesh mesh{plan.axes};
  return plan::collectiveKey(
      instruction.kind,
      mesh.group(mesh.set(instruction.axes), plan.ranks()).ranks,
      exchanged->bytes());
}

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
        Timed &timed = result[name];
        if (!timed.first)
          timed = {
              &instruction, key, exchangedBy(plan, instruction)->bytes(), {}};
        timed.stages.insert(stage);
      }
      for (const int64_t bytes : plan::messageBytes(program)) {
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
