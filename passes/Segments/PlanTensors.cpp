//===- PlanTensors.cpp - The tensors of a plan, in order ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Follows runtime/execute: UnitStorage and Executor for what a rank holds,
// ProgramRunner and FunctionRunner for when tensors come and go. All but what
// is gathered are of the compute stream; events make the others wait.
//
//===----------------------------------------------------------------------===//
#include "passes/Segments/Segments.h"

#include "runtime/plan/Chunks.h"
#include "runtime/plan/Liveness.h"
#include "runtime/plan/UpdateLayout.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

namespace accel {

using plan::ProgramInstruction;
using plan::ProgramInstructionKind;

class PlanTensors::Recorder {
public:
  Recorder(const plan::Plan &plan, int stage, const CudaDevice &device,
           bool keepsWorkspaces)
      : plan(plan), stage(stage), device(device),
        keepsWorkspaces(keepsWorkspaces), rule(plan.job.optimizer),
        inner(plan.functions.size()),
        buffers(plan.units.size(), {-1, -1, -1, -1}) {
    start();
  }

  void step() {
    if (plan.stages.empty())
      for (const auto &[index, repeat] : plan.step)
        for (int64_t i = 0; i < repeat; ++i)
          run(plan.programs[index]);
    else
      runFrames();
    problem.events.push_back({replay::Action::StepEnd});
  }

  void evaluate() {
    for (int chunk = 0; chunk < plan.numChunks(); ++chunk)
      if (const int index = plan.evalOf(stage, chunk); index >= 0)
        run(plan.programs[index]);
  }

  replay::Problem problem;
  int64_t keptBytes() const {
    int64_t bytes = 0;
    for (int64_t each : kept)
      bytes += plan::alignedBytes(each);
    return bytes;
  }

private:
  /// A storage is the name of its tensor in the problem; -1: it is not counted
  /// here, or has no bytes.
  using Storage = int;
  using Frame = std::vector<Storage>; // by value

  Storage make(int64_t bytes, plan::Stream stream = plan::Stream::Compute) {
    if (bytes <= 0)
      return -1;
    const Storage made = problem.tensors++;
    holders.push_back(1);
    problem.events.push_back(
        {replay::Action::Allocate, static_cast<int>(stream), made, bytes});
    return made;
  }
  Storage hold(Storage storage) {
    if (storage >= 0)
      ++holders[storage];
    return storage;
  }
  void release(Storage &held) {
    const Storage storage = std::exchange(held, -1);
    if (storage >= 0 && --holders[storage] == 0)
      problem.events.push_back({replay::Action::Free, 0, storage});
  }
  /// `into` holds `storage`, which the caller held.
  void assign(Storage &into, Storage storage) {
    std::swap(into, storage);
    release(storage);
  }

  //===--- What lives as long as the job ----------------------------------===//

  void start() {
    for (const plan::Unit &unit : plan.units) {
      if (unit.stage != stage)
        continue;
      if (!plan.offload.parameters)
        make(plan::shardNumel(plan, unit) * plan::itemSize(unit.storage));
      if (unit.trainable && !plan.offload.states)
        for (const plan::StateLayout &state : plan::stateLayouts(plan, unit))
          make(state.elements * plan::itemSize(state.dtype));
      if (unit.whole)
        make(plan::roleBytes(plan, unit, plan::Role::Gathered));
    }
    // Sums of squares, the seed; five of the scaler, and the numbers of a step.
    // Rates by group, the count of steps and what gradients are multiplied by
    // are where the update is.
    size_t numbers = squareSets() + 7;
    if (!plan.offload.states)
      numbers += plan.job.optimizer.groups.size() + 2;
    for (size_t i = 0; i < numbers; ++i)
      make(sizeof(double));
    // Executor::holdBuffers, before the first step.
    for (const plan::Value *buffer : plan::buffersOf(plan, stage))
      make(plan::denseBytes(*buffer));
  }

  /// As Executor::addSquareSets makes them.
  size_t squareSets() const {
    std::set<std::vector<std::string>> sets;
    for (const plan::Unit &unit : plan.units)
      if (unit.trainable && unit.copyOf < 0)
        for (int parameter : unit.parameters) {
          std::vector<std::string> axes = unit.shardAxes;
          for (const plan::AxisSplit &split : plan.parameters[parameter].split)
            axes.push_back(split.axis);
          sets.insert(std::move(axes));
        }
    return sets.size();
  }

  //===--- Programs -------------------------------------------------------===//

  Frame begin(const plan::Program &program) {
    Frame frame(program.values.size(), -1);
    for (int value : program.inputs)
      frame[value] = make(program.values[value].bytes);
    return frame;
  }

  void finish(const plan::Program &program, Frame &frame) {
    // Loss and predictions are read when the other values are gone.
    Storage loss = program.loss < 0 ? -1 : hold(frame[program.loss]);
    Storage predictions =
        program.predictions < 0 ? -1 : hold(frame[program.predictions]);
    for (Storage &value : frame)
      release(value);
    release(loss);
    release(predictions);
  }

  void run(const plan::Program &program) {
    Frame frame = begin(program);
    for (const ProgramInstruction &instruction : program.instructions)
      execute(program, instruction, frame);
    finish(program, frame);
  }

  /// Executor::queueFrames.
  void runFrames() {
    std::map<std::pair<int, int64_t>, Frame> frames; // chunk, micro-batch
    for (const plan::StageAction &action : plan.stages[stage].order) {
      const std::pair key(action.chunk, action.microBatch);
      const plan::Program &program =
          plan.programs[plan.programOf(stage, action.chunk, action.microBatch)];
      if (action.part == plan::Part::Forward)
        frames[key] = begin(program);
      Frame &frame = frames.at(key);
      const std::vector<size_t> parts = plan::partsOf(program);
      const size_t part = plan.positionOf(action.part);
      for (size_t i = parts[part]; i < parts[part + 1]; ++i)
        execute(program, program.instructions[i], frame);
      if (part + 2 < parts.size())
        continue;
      finish(program, frame);
      frames.erase(key);
    }
  }

  void execute(const plan::Program &program,
               const ProgramInstruction &instruction, Frame &frame) {
    switch (instruction.kind) {
    case ProgramInstructionKind::Alloc:
      assign(
          bufferOf(instruction),
          make(plan::roleBytes(plan, plan.units[instruction.unit],
                               instruction.role),
               plan::memoryOf(plan.units[instruction.unit], instruction.role)));
      return;
    case ProgramInstructionKind::Free:
      if (instruction.unit >= 0)
        release(bufferOf(instruction));
      for (int value : instruction.values)
        release(frame[value]);
      return;
    case ProgramInstructionKind::Call:
      return call(instruction, frame);
    case ProgramInstructionKind::GradNorm:
      return norm();
    case ProgramInstructionKind::Optimizer:
      return update(plan.units[instruction.unit]);
    case ProgramInstructionKind::Receive: {
      const int value = instruction.outputs[0];
      assign(frame[value], make(program.values[value].bytes));
      return;
    }
    case ProgramInstructionKind::Fetch:
      return fetch(program, instruction, frame);
    default:
      return;
    }
  }

  Storage &bufferOf(const ProgramInstruction &instruction) {
    return buffers[instruction.unit][static_cast<size_t>(instruction.role)];
  }

  /// HostValues::allocate.
  void fetch(const plan::Program &program,
             const ProgramInstruction &instruction, Frame &frame) {
    std::map<int, Storage> made; // by what they were
    for (size_t i = 0; i < instruction.inputs.size(); ++i) {
      const int root = plan::rootOf(program, instruction.inputs[i]);
      auto at = made.find(root);
      if (at == made.end())
        at = made.emplace(root, make(program.values[root].bytes)).first;
      assign(frame[instruction.outputs[i]], hold(at->second));
    }
    for (auto &[root, storage] : made)
      release(storage);
  }

  void norm() {
    for (const plan::Unit &unit : plan.units) {
      if (unit.stage != stage || !unit.trainable || plan.offload.states)
        continue;
      Storage single = make(sizeof(float)), wide = make(sizeof(double));
      release(single);
      release(wide);
    }
  }

  void update(const plan::Unit &unit) {
    if (!rule.description || rule.isFlat())
      return;
    const plan::UpdateWork work =
        plan::updateWork(rule, plan::updateShape(plan, unit), plan.device);
    Storage workspace = make(work.workspaceBytes);
    if (work.flops > 0)
      useWorkspace(gemmWorkspace(device.capability));
    release(workspace);
  }

  /// Of a product whose result is there. cuBLASLt has one of its own, and its
  /// handle is cuBLAS's, which asks for cuBLAS's first.
  void useWorkspace(int64_t bytes) {
    if (!keepsWorkspaces) {
      Storage library = make(bytes);
      release(library);
      return;
    }
    for (int64_t each : {gemmWorkspace(device.capability), bytes})
      if (kept.insert(each).second)
        make(each);
  }

  //===--- Functions ------------------------------------------------------===//

  void call(const ProgramInstruction &instruction, Frame &frame) {
    const plan::Function &function = plan.functions[instruction.function];
    const std::vector<Inside> &insides = innerOf(instruction.function);
    // Of each slot, and of each storage's first slot.
    slots.assign(function.slots.size(), -1);
    owners.assign(function.slots.size(), -1);
    for (size_t i = 0; i < instruction.inputs.size(); ++i) {
      const int slot = function.inputs[i];
      slots[slot] = owners[slot] = hold(frame[instruction.inputs[i]]);
    }
    for (size_t i = 0; i < instruction.consumed.size(); ++i)
      if (instruction.consumed[i])
        release(frame[instruction.inputs[i]]);
    for (size_t i = 0; i < function.instructions.size(); ++i) {
      const plan::Instruction &at = function.instructions[i];
      temporaries.clear();
      for (int64_t bytes : insides[i].bytes.before)
        temporaries.push_back(make(bytes));
      for (int slot : at.results) {
        if (slot < 0)
          continue;
        const int base = plan::baseOf(function, slot);
        if (base == slot)
          slots[slot] = owners[slot] = make(function.slotBytes(slot));
        else
          slots[slot] = hold(owners[base]);
      }
      if (keepsWorkspaces && insides[i].library > 0)
        useWorkspace(insides[i].library);
      const size_t first = temporaries.size();
      for (int64_t bytes : insides[i].bytes.after)
        if (bytes < 0)
          release(temporaries[first - bytes - 1]);
        else
          temporaries.push_back(make(bytes));
      for (Storage &temporary : temporaries)
        release(temporary);
      for (int slot : at.frees)
        release(slots[slot]);
    }
    for (size_t i = 0; i < instruction.outputs.size(); ++i)
      if (instruction.outputs[i] >= 0)
        assign(frame[instruction.outputs[i]], hold(slots[function.outputs[i]]));
    for (Storage &slot : slots)
      release(slot);
  }

  /// What an operator asks for; a workspace that is kept stands for itself.
  struct Inside {
    InnerBytes bytes;
    int64_t library = 0;
  };

  const std::vector<Inside> &innerOf(int index) {
    std::vector<Inside> &known = inner[index];
    const plan::Function &function = plan.functions[index];
    if (!known.empty())
      return known;
    for (const plan::Instruction &instruction : function.instructions) {
      Inside &inside = known.emplace_back();
      inside.bytes = innerBytesOfAll(function, instruction, device);
      if (!keepsWorkspaces)
        continue;
      InnerBytes own = innerBytes(function, instruction, device);
      if (own.after.empty() && !inside.bytes.after.empty()) {
        inside.library = inside.bytes.after.front();
        inside.bytes = std::move(own);
      }
    }
    return known;
  }

  const plan::Plan &plan;
  const int stage;
  const CudaDevice device;
  const bool keepsWorkspaces;
  std::set<int64_t> kept; // workspaces, by their bytes
  const plan::OptimizerRule rule;
  std::vector<int> holders;                        // by storage
  std::vector<std::vector<Inside>> inner;          // by function
  std::vector<std::array<Storage, 4>> buffers;     // by unit and role
  std::vector<Storage> slots, owners, temporaries; // of a call
};

PlanTensors::PlanTensors(const plan::Plan &plan, int stage,
                         const CudaDevice &device, bool keepsWorkspaces)
    : recorder(
          std::make_unique<Recorder>(plan, stage, device, keepsWorkspaces)) {}
PlanTensors::~PlanTensors() = default;
void PlanTensors::step() { recorder->step(); }
void PlanTensors::evaluate() { recorder->evaluate(); }
int64_t PlanTensors::keptBytes() const { return recorder->keptBytes(); }
const replay::Problem &PlanTensors::problem() const {
  return recorder->problem;
}

} // namespace accel
