//===- VerifyOffload.cpp - What goes to the host and back -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/DiskLayout.h"
#include "runtime/plan/ProgramVerifier.h"
#include "runtime/plan/UpdateLayout.h"

namespace accel::plan {

void verifyOffload(const Plan &plan, Problems &problems) {
  const Offload &offload = plan.offload;
  if (offload == Offload())
    return;
  if (plan.device == "cpu")
    problems.add("offload", "the device is the host already");
  if (!plan.stages.empty())
    problems.add("offload", "stages of a pipeline keep all on the device");
  if (offload.onDisk()) {
    const Disk &disk = offload.disk;
    if (!offload.states)
      problems.add("offload", "nothing is on the disk: states are on the "
                              "device");
    if (disk.buffers < leastBuffers(disk.readAhead, disk.writeBehind))
      problems.add("offload",
                   "of " + std::to_string(disk.buffers) +
                       " buffers none is free to read or write beside an "
                       "update");
    if (plan.job.checkpoint.background)
      problems.add("offload", "a checkpoint in the background copies to the "
                              "host's memory what is on the disk");
  } else if (offload.disk != Disk()) {
    problems.add("offload", "the disk has no folder");
  }
  if (!offload.states && !offload.parameters)
    return;
  const OptimizerRule rule(plan.job.optimizer);
  if (!rule.description || rule.description->reads != UpdateReads::Elements)
    problems.add("offload", "the optimizer " + quoted(plan.job.optimizer.name) +
                                " is not run on the host");
  if (!offload.states)
    problems.add("offload", "parameters on the host are updated there, with "
                            "their states");
}

bool ProgramVerifier::gradientsOnHost(int index, Stream stream,
                                      const char *verb) {
  if (stream != Stream::Host)
    complain(std::string("it runs on stream ") + toString(stream) +
             ", but the states are on the host");
  if (!state.units[index].offloaded)
    complain(std::string(verb) + " the gradients of unit " +
             quoted(plan.units[index].name) +
             ", which are not copied to the host");
  return state.units[index].offloaded && stream == Stream::Host;
}

void ProgramVerifier::offload(const ProgramInstruction &instruction,
                              int index) {
  if (instruction.unit < 0)
    return offloadValues(instruction, index);
  if (!instruction.inputs.empty())
    complain("it copies a unit's gradients and values at once");
  UnitState &unit = state.units[instruction.unit];
  const std::string name = quoted(plan.units[instruction.unit].name);
  if (!plan.offload.states || !plan.units[instruction.unit].trainable)
    complain("unit " + name + " has no gradients on the host");
  if (unit.offloaded)
    complain("it copies the gradients of unit " + name + " twice in one step");
  gradientsReady(instruction.unit, instruction.stream, "it copies");
  unit.offloaded = true;
  fly({instruction.unit, {Role::ShardGradient}, index}, instruction);
}

bool ProgramVerifier::isOnItsWay(const std::map<int, std::vector<int>> &where,
                                 int value) const {
  for (const auto &[timepoint, values] : where)
    for (int other : values)
      if (rootOf(other) == rootOf(value))
        return true;
  return false;
}

/// A value that is being copied must stay.
void ProgramVerifier::giveUp(int value) {
  live[value] = false;
  if (isOnItsWay(sent, value))
    complain("it gives up " + valueName(value) + " while it is sent");
  if (isOnItsWay(fetched, value))
    complain("it gives up " + valueName(value) + " while it is fetched");
}

void ProgramVerifier::offloadValues(const ProgramInstruction &instruction,
                                    int index) {
  if (!plan.offload.activations)
    complain("it copies values, but the plan keeps them on the device");
  for (int value : instruction.inputs) {
    useValue(value, "it copies");
    if (onHost[value])
      complain("it copies " + valueName(value) + " twice");
  }
  for (int value : instruction.inputs)
    onHost[value] = true;
  sent[instruction.timepoint] = instruction.inputs;
  fly({-1, {}, index}, instruction);
}

void ProgramVerifier::fetch(const ProgramInstruction &instruction, int index) {
  if (instruction.inputs.empty() ||
      instruction.inputs.size() != instruction.outputs.size())
    return void(complain("it makes one value of each that is on the host"));
  for (size_t i = 0; i < instruction.inputs.size(); ++i) {
    const int from = instruction.inputs[i], to = instruction.outputs[i];
    if (to < 0)
      return void(complain("it drops what it fetches"));
    if (!onHost[from])
      complain("it fetches " + valueName(from) +
               ", which is not copied to the host");
    else if (isOnItsWay(sent, from))
      complain("it fetches " + valueName(from) +
               " before its copy to the host is awaited");
    const Value &value = program.values[to], &before = program.values[from];
    if (value.dtype != before.dtype || value.shape != before.shape)
      complain(valueName(to) + " has another type than " + valueName(from));
    if (defined[to])
      complain(valueName(to) + " is made twice");
    defined[to] = live[to] = true;
  }
  shareStorages(instruction);
  fetched[instruction.timepoint] = instruction.outputs;
  fly({-1, {}, index}, instruction);
}

/// What it makes shares storages as what it was made of did.
void ProgramVerifier::shareStorages(const ProgramInstruction &instruction) {
  std::map<int, int> owners; // storage before -> value
  for (size_t i = 0; i < instruction.inputs.size(); ++i) {
    const int root = rootOf(instruction.inputs[i]), to = instruction.outputs[i];
    const Value &value = program.values[to];
    auto [owner, first] = owners.emplace(root, to);
    if (first ? value.alias >= 0 || value.bytes != program.values[root].bytes
              : value.alias != owner->second)
      complain(valueName(to) + " has another storage than " +
               valueName(instruction.inputs[i]) + " had");
  }
}

} // namespace accel::plan
