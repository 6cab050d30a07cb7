//===- Calibrate.cpp - Times each operator of a plan ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/accel-run/Calibrate.h"

#include "runtime/execute/FunctionRunner.h"
#include "runtime/plan/InstructionKey.h"
#include "runtime/tensors/Tensors.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <set>

namespace accel::run {

using nlohmann::ordered_json;

namespace {

/// Runs of each; fewer where they take longer than `enoughSeconds` together.
constexpr int fewest = 3, most = 20, warm = 2;
constexpr double enoughSeconds = 0.5;

struct Sample {
  int function = 0, instruction = 0; // the first that is so
  int64_t calls = 0;                 // in an optimizer step
};

bool isView(const plan::Function &function,
            const plan::Instruction &instruction) {
  return !instruction.results.empty() &&
         std::all_of(instruction.results.begin(), instruction.results.end(),
                     [&](int slot) {
                       return slot < 0 || function.slots[slot].base != slot;
                     });
}

std::map<std::string, Sample> samplesOf(const plan::Plan &plan) {
  std::map<std::string, Sample> samples;
  for (const auto &[index, repeat] : plan.step)
    for (const plan::ProgramInstruction &call :
         plan.programs[index].instructions) {
      if (call.kind != plan::ProgramInstructionKind::Call)
        continue;
      const plan::Function &function = plan.functions[call.function];
      for (size_t i = 0; i < function.instructions.size(); ++i) {
        const plan::Instruction &instruction = function.instructions[i];
        if (isView(function, instruction))
          continue;
        auto [at, isNew] =
            samples.emplace(plan::instructionKey(function, instruction),
                            Sample{call.function, static_cast<int>(i), 0});
        at->second.calls += repeat;
      }
    }
  return samples;
}

std::vector<int> tensorsOf(const plan::Instruction &instruction) {
  std::vector<int> slots;
  for (const plan::Arg &arg : instruction.args) {
    if (arg.kind == plan::Arg::Kind::Tensor)
      slots.push_back(arg.slot);
    if (arg.kind == plan::Arg::Kind::Tensors)
      for (int64_t slot : arg.ints)
        if (slot >= 0)
          slots.push_back(static_cast<int>(slot));
  }
  return slots;
}

/// The instruction alone, after the views that make its arguments, so that they
/// lie in memory as they do in the function.
plan::Function alone(const plan::Function &whole, int index) {
  plan::Function part;
  part.name = whole.name;
  part.slots = whole.slots;
  std::vector<int> needed = {index};
  std::set<int> made, inputs;
  for (size_t i = 0; i < needed.size(); ++i)
    for (int slot : tensorsOf(whole.instructions[needed[i]])) {
      int maker = -1;
      for (int at = 0; at < needed[i]; ++at) {
        const auto &results = whole.instructions[at].results;
        if (std::find(results.begin(), results.end(), slot) != results.end() &&
            isView(whole, whole.instructions[at]))
          maker = at;
      }
      if (maker < 0)
        inputs.insert(slot);
      else
        needed.push_back(maker);
    }
  std::sort(needed.begin(), needed.end());
  needed.erase(std::unique(needed.begin(), needed.end()), needed.end());
  for (int at : needed) {
    part.instructions.push_back(whole.instructions[at]);
    part.instructions.back().frees.clear();
  }
  part.inputs.assign(inputs.begin(), inputs.end());
  return part;
}

/// Numbers about 1, or indices below the last size of the first tensor that
/// holds numbers: rows of tables, classes.
at::Tensor randomTensor(const plan::Function &function, int slot,
                        c10::Device device) {
  const plan::Slot &type = function.slots[slot];
  const auto options = at::TensorOptions(scalarType(type.dtype)).device(device);
  if (c10::isFloatingType(scalarType(type.dtype)))
    return at::randn(type.shape, at::TensorOptions(at::kFloat).device(device))
        .to(options.dtype());
  if (type.dtype == plan::DType::I1)
    return at::randint(2, type.shape, options);
  int64_t limit = 1;
  for (int other : function.inputs)
    if (const plan::Slot &table = function.slots[other];
        c10::isFloatingType(scalarType(table.dtype)) && !table.shape.empty()) {
      limit = std::max<int64_t>(table.shape.back(), 1);
      break;
    }
  return at::randint(std::min<int64_t>(limit, 127), type.shape, options);
}

/// Seconds of `run`, after a few runs that do not count: those of the fastest
/// eighth, as what else the machine does makes a run longer and never shorter.
/// `together`: as often on every rank.
template <typename Run>
double timed(Device &device, Run &&run, bool together = false) {
  for (int i = 0; i < warm; ++i)
    run();
  InstructionTimes times(1);
  std::vector<double> seconds;
  double sum = 0;
  for (int i = 0; i < most && (together || i < fewest || sum < enoughSeconds);
       ++i) {
    InstructionTime time;
    time.beginMark = device.mark();
    run();
    time.endMark = device.mark();
    times[0] = {time};
    device.resolve(times);
    seconds.push_back(times[0][0].end - times[0][0].begin);
    sum += seconds.back();
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 8];
}

ordered_json timeInstruction(const plan::Plan &plan, const std::string &key,
                             const Sample &sample, Device &device,
                             Groups &groups) {
  const plan::Function part =
      alone(plan.functions[sample.function], sample.instruction);
  const plan::Instruction &last = part.instructions.back();
  ordered_json result = {{"op", last.op},
                         {"key", key},
                         {"where", last.where},
                         {"function", sample.function},
                         {"instruction", sample.instruction},
                         {"calls", sample.calls}};
  ordered_json types = ordered_json::array();
  for (int slot : tensorsOf(last))
    types.push_back(plan::typeText(part, slot));
  result["tensors"] = std::move(types);
  // Where views do not fit, the inputs lie as attention leaves them: by heads.
  for (const bool byHeads : {false, true})
    try {
      if (last.kind == plan::Instruction::Kind::Opaque || part.draws() ||
          plan::isExchange(last))
        throw PlanError("cannot run alone");
      FunctionRunner runner(part, device, groups);
      for (size_t i = 0; i < part.inputs.size(); ++i) {
        at::Tensor input = randomTensor(part, part.inputs[i], device.device());
        if (byHeads && input.dim() == 4)
          input = input.transpose(1, 2).contiguous().transpose(1, 2);
        runner.input(i) = input;
      }
      OwnPeak peak;
      result["seconds"] = timed(device, [&] { runner.run({}, {}, peak); });
      result.erase("reason");
      runner.clear();
      break;
    } catch (const std::exception &error) {
      result["seconds"] = nullptr;
      result["reason"] = plainMessage(error);
    }
  return result;
}

ordered_json timeCollectives(const plan::Plan &plan, Device &device,
                             Groups &groups) {
  ordered_json result = ordered_json::array();
  std::set<std::string> known;
  for (const auto &[index, repeat] : plan.step)
    for (const plan::ProgramInstruction &instruction :
         plan.programs[index].instructions) {
      const bool gathers =
          instruction.kind == plan::ProgramInstructionKind::AllGather;
      if (!gathers &&
          instruction.kind != plan::ProgramInstructionKind::ReduceScatter)
        continue;
      Communicator *group =
          groups.over(instruction.axes, gathers ? "gather" : "reduce");
      const plan::Unit &unit = plan.units[instruction.unit];
      const plan::DType dtype = gathers ? unit.gather : unit.reduce;
      const int64_t bytes = unit.padded * plan::itemSize(dtype);
      const std::string key = std::string(plan::toString(instruction.kind)) +
                              groups.mesh().groupName(instruction.axes) +
                              std::to_string(bytes);
      if (!group || !known.insert(key).second)
        continue;
      const auto options =
          at::TensorOptions(scalarType(dtype)).device(device.device());
      at::Tensor whole = at::empty({unit.padded}, options);
      whole.fill_(1);
      const int64_t length = unit.padded / group->size();
      at::Tensor piece = whole.narrow(0, group->rank() * length, length);
      at::Tensor received = at::empty({unit.padded - length}, options);
      const bool exchanges = instruction.algorithm == "all_to_all";
      groups.barrier();
      const double seconds = timed(
          device,
          [&] {
            if (gathers)
              group->allGather(whole, piece).wait();
            else if (exchanges)
              group->allToAll(received, whole).wait();
            else
              group->reduceScatter(piece, whole).wait();
          },
          /*together=*/true);
      result.push_back({{"kind", plan::toString(instruction.kind)},
                        {"axes", instruction.axes},
                        {"bytes", bytes},
                        {"ranks", group->size()},
                        {"seconds", seconds}});
    }
  return result;
}

} // namespace

std::string calibrate(const plan::Plan &plan, Device &device, Groups &groups) {
  at::AutoDispatchBelowADInplaceOrView below;
  at::NoGradGuard noGrad;
  ordered_json collectives = timeCollectives(plan, device, groups);
  // One rank after the other would be more exact on a machine without GPUs,
  // and less like a step, in which all ranks compute at once.
  groups.barrier();
  ordered_json instructions = ordered_json::array();
  for (const auto &[key, sample] : samplesOf(plan))
    instructions.push_back(timeInstruction(plan, key, sample, device, groups));
  groups.barrier();
  return ordered_json{{"format", 1},
                      {"device", plan.device},
                      {"ranks", plan.ranks()},
                      {"instructions", std::move(instructions)},
                      {"collectives", std::move(collectives)}}
             .dump(1) +
         "\n";
}

std::map<std::string, double> measuredOperators(const std::string &figures) {
  std::map<std::string, double> seconds;
  const auto json = ordered_json::parse(figures);
  for (const auto &each : json.at("instructions"))
    if (!each["seconds"].is_null())
      seconds[each["key"].get<std::string>()] = each["seconds"].get<double>();
  return seconds;
}

} // namespace accel::run
