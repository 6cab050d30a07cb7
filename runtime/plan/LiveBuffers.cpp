//===- LiveBuffers.cpp - Who holds memory at an instruction ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/LiveBuffers.h"

#include "runtime/plan/Chunks.h"
#include "runtime/plan/Timeline.h"
#include "runtime/plan/UpdateLayout.h"

#include <algorithm>
#include <map>

namespace accel::plan {

namespace {

/// Storages of one call, instruction by instruction.
class CallStorages {
public:
  explicit CallStorages(const Function &function)
      : function(function), slotsOf(function.slots.size()),
        made(function.slots.size(), -1), gone(function.slots.size(), never) {
    std::vector<bool> alive(function.slots.size());
    auto arrives = [&](int slot) {
      alive[slot] = true;
      ++slotsOf[baseOf(slot)];
    };
    for (int slot : function.inputs)
      arrives(slot);
    for (size_t i = 0; i < function.instructions.size(); ++i) {
      for (int slot : function.instructions[i].results)
        if (slot >= 0) {
          arrives(slot);
          if (baseOf(slot) == slot)
            made[slot] = static_cast<int>(i);
        }
      for (int slot : function.instructions[i].frees)
        if (alive[slot]) {
          alive[slot] = false;
          if (--slotsOf[baseOf(slot)] == 0)
            gone[baseOf(slot)] = static_cast<int>(i);
        }
    }
  }

  /// Own storages that are there while instruction `inner` of the function
  /// runs, called by instruction `instruction` of the program.
  std::vector<LiveBuffer> own(int inner, int instruction) const {
    std::vector<LiveBuffer> result;
    for (size_t slot = 0; slot < made.size(); ++slot)
      if (made[slot] >= 0 && made[slot] <= inner && gone[slot] >= inner &&
          function.slotBytes(slot) > 0) {
        const Instruction &op = function.instructions[made[slot]];
        result.push_back({"temporary",
                          op.op + (op.where.empty() ? "" : " of " + op.where),
                          function.slotBytes(slot), instruction});
      }
    return result;
  }

  /// The instruction with which the input's storage loses its last slot.
  int inputGone(size_t input) const {
    return gone[baseOf(function.inputs[input])];
  }

private:
  static constexpr int never = 1 << 30;
  int baseOf(int slot) const {
    const int base = function.slots[slot].base;
    return base < 0 ? slot : base;
  }

  const Function &function;
  std::vector<int> slotsOf, made, gone;
};

/// Walks through the programs of a step, with what is there by its name.
class Walker {
public:
  explicit Walker(const Plan &plan) : plan(plan) {}

  std::vector<LiveBuffer> at(int target, int instruction) {
    const Program &wanted = plan.programs[target];
    for (size_t u = 0; u < plan.units.size(); ++u)
      if (plan.units[u].whole && plan.units[u].stage == wanted.stage)
        buffers.try_emplace({static_cast<int>(u), Role::Gathered}, -1);
    const bool eval = target == plan.evalOf(wanted.stage, wanted.chunk);
    if (!eval && plan.numChunks() > 1)
      walkOrder(target, instruction);
    else if (!eval)
      for (const auto &[index, repeat] : plan.stepsOf(wanted.stage)) {
        if (index == target)
          break;
        begin(index);
        for (size_t s = 0; s < program->instructions.size(); ++s)
          apply(static_cast<int>(s));
        for (auto &[key, since] : buffers)
          since = -1;
      }
    begin(target);
    int64_t startBytes = 0;
    for (const LiveBuffer &holder : held())
      if (holder.kind != "value")
        startBytes += holder.bytes;
    const ProgramTimeline timeline = simulate(plan, *program, startBytes);
    for (int s = 0; s < instruction; ++s)
      apply(s);
    const ProgramInstruction &here = program->instructions[instruction];
    if (here.kind == ProgramInstructionKind::Alloc ||
        here.kind == ProgramInstructionKind::Receive ||
        here.kind == ProgramInstructionKind::Fetch)
      apply(instruction);
    std::vector<LiveBuffer> result = held();
    if (here.kind == ProgramInstructionKind::Call &&
        timeline.instructions[instruction].peakInstruction >= 0)
      addCall(here, instruction,
              timeline.instructions[instruction].peakInstruction, result);
    if (here.kind == ProgramInstructionKind::Optimizer)
      if (const InstructionMemory &memory = timeline.instructions[instruction];
          memory.peakBytes > memory.liveBytes)
        result.push_back({"workspace", plan.units[here.unit].name,
                          memory.peakBytes - memory.liveBytes, instruction});
    return result;
  }

  /// Programs of several chunks take turns: what units have while an
  /// instruction of one of them runs, where that is most.
  void walkOrder(int target, int instruction) {
    auto now = buffers, most = buffers;
    int64_t mostBytes = -1;
    const int stage = plan.programs[target].stage;
    for (const StageAction &action : plan.stages[stage].order) {
      const int index = plan.programOf(stage, action.chunk, action.microBatch);
      const Program &run = plan.programs[index];
      const std::vector<size_t> parts = partsOf(run);
      const size_t part = plan.positionOf(action.part);
      const size_t at = static_cast<size_t>(std::max(instruction, 0));
      if (index == target && parts[part] <= at && at < parts[part + 1]) {
        int64_t bytes = 0;
        for (const auto &[key, since] : now)
          bytes += roleBytes(plan, plan.units[key.first], key.second);
        if (bytes > mostBytes) {
          mostBytes = bytes;
          most = now;
        }
      }
      for (size_t i = parts[part]; i < parts[part + 1]; ++i) {
        const ProgramInstruction &step = run.instructions[i];
        if (step.kind == ProgramInstructionKind::Alloc)
          now.try_emplace({step.unit, step.role}, -1);
        else if (step.kind == ProgramInstructionKind::Free && step.unit >= 0)
          now.erase({step.unit, step.role});
      }
    }
    buffers = std::move(most);
  }

  /// What one micro-batch of a stage holds behind one of its parts.
  int64_t heldBehind(int target, size_t part) {
    begin(target);
    for (size_t s = 0; s < partsOf(*program)[part + 1]; ++s)
      apply(static_cast<int>(s));
    int64_t bytes = 0;
    for (size_t value = 0; value < handles.size(); ++value)
      if (handles[value] > 0)
        bytes += program->values[value].bytes;
    return bytes;
  }

private:
  void begin(int index) {
    program = &plan.programs[index];
    handles.assign(program->values.size(), 0);
    live.assign(program->values.size(), false);
    since.assign(program->values.size(), -1);
    for (int value : program->inputs)
      define(value, -1);
  }

  int rootOf(int value) const { return plan::rootOf(*program, value); }
  void define(int value, int instruction) {
    if (value < 0 || live[value])
      return;
    live[value] = true;
    if (handles[rootOf(value)]++ == 0)
      since[rootOf(value)] = instruction;
  }
  void drop(int value) {
    if (live[value])
      --handles[rootOf(value)];
    live[value] = false;
  }

  void apply(int s) {
    const ProgramInstruction &instruction = program->instructions[s];
    switch (instruction.kind) {
    case ProgramInstructionKind::Alloc:
      buffers.try_emplace({instruction.unit, instruction.role}, s);
      break;
    case ProgramInstructionKind::Free:
      if (instruction.unit >= 0)
        buffers.erase({instruction.unit, instruction.role});
      for (int value : instruction.values)
        drop(value);
      break;
    case ProgramInstructionKind::Receive:
    case ProgramInstructionKind::Fetch:
      for (int value : instruction.outputs)
        define(value, s);
      break;
    case ProgramInstructionKind::Call:
      for (size_t i = 0; i < instruction.inputs.size(); ++i)
        if (i < instruction.consumed.size() && instruction.consumed[i])
          drop(instruction.inputs[i]);
      for (int value : instruction.outputs)
        define(value, s);
      break;
    default:
      break;
    }
  }

  std::vector<LiveBuffer> held() const {
    std::vector<LiveBuffer> result;
    for (const Unit &unit : plan.units) {
      if (unit.stage != program->stage)
        continue;
      if (!plan.offload.parameters)
        result.push_back(
            {"parameters", unit.name,
             alignedBytes(shardNumel(plan, unit) * itemSize(unit.storage)),
             -1});
      if (const int64_t states = stateBytes(plan, unit);
          states && !plan.offload.states)
        result.push_back({"optimizer", unit.name, states, -1});
    }
    if (plan.keptWorkspaceBytes)
      result.push_back({"workspace", "kept", plan.keptWorkspaceBytes, -1});
    for (const Value *buffer : buffersOf(plan, program->stage))
      result.push_back({"buffer", buffer->name, denseBytes(*buffer), -1});
    for (const auto &[key, from] : buffers)
      result.push_back({toString(key.second), plan.units[key.first].name,
                        roleBytes(plan, plan.units[key.first], key.second),
                        from});
    for (size_t value = 0; value < handles.size(); ++value)
      if (handles[value] > 0 && program->values[value].bytes > 0)
        result.push_back({"value", program->values[value].name,
                          program->values[value].bytes, since[value]});
    return result;
  }

  void addCall(const ProgramInstruction &instruction, int s, int inner,
               std::vector<LiveBuffer> &result) {
    const Function &function = plan.functions[instruction.function];
    const CallStorages storages(function);
    // Values that only this call holds leave it one by one.
    std::map<int, int> lastRead; // root -> instruction
    std::vector<int> handlesLeft = handles;
    for (size_t i = 0; i < instruction.inputs.size(); ++i)
      if (i < instruction.consumed.size() && instruction.consumed[i] &&
          live[instruction.inputs[i]])
        --handlesLeft[rootOf(instruction.inputs[i])];
    for (int value : instruction.outputs)
      if (value >= 0 && rootOf(value) != value)
        ++handlesLeft[rootOf(value)];
    for (size_t i = 0; i < instruction.inputs.size(); ++i) {
      const int root = rootOf(instruction.inputs[i]);
      int &last = lastRead.try_emplace(root, -1).first->second;
      last = std::max(last, storages.inputGone(i));
    }
    for (const auto &[root, last] : lastRead)
      if (handlesLeft[root] <= 0 && last < inner)
        std::erase_if(result, [&](const LiveBuffer &holder) {
          return holder.kind == "value" &&
                 holder.name == program->values[root].name &&
                 holder.since == since[root];
        });
    for (LiveBuffer &holder : storages.own(inner, s))
      result.push_back(std::move(holder));
    const Instruction &op = function.instructions[inner];
    if (op.workspaceBytes)
      result.push_back({"workspace", op.op, op.workspaceBytes, s});
  }

  const Plan &plan;
  const Program *program = nullptr;
  std::map<std::pair<int, Role>, int> buffers; // instruction that made it
  std::vector<int> handles, since;
  std::vector<bool> live;
};

/// Bytes that instructions [from, to) hand over to the next chunk of the same
/// ranks, less those that they take.
int64_t handedBytes(const Plan &plan, const Program &program, size_t from,
                    size_t to) {
  int64_t bytes = 0;
  for (size_t i = from; i < to; ++i) {
    const ProgramInstruction &at = program.instructions[i];
    if (!staysInStage(plan, program, at))
      continue;
    if (at.kind == ProgramInstructionKind::Send)
      bytes += denseBytes(program.values[at.inputs[0]]);
    else
      bytes -= program.values[at.outputs[0]].bytes;
  }
  return bytes;
}

/// What other micro-batches hold while a program's instruction runs, where that
/// is most.
LiveBuffer othersAt(const Plan &plan, int program, int instruction) {
  const int stage = plan.programs[program].stage;
  const std::vector<size_t> parts = partsOf(plan.programs[program]);
  using Frame = std::pair<int, size_t>; // program, the part that was run
  std::map<std::pair<int, int64_t>, Frame> frames; // by chunk, micro-batch
  std::map<Frame, int64_t> held;
  int64_t handed = 0; // from chunk to chunk
  LiveBuffer most{"value", "", 0, -1};
  for (const StageAction &action : plan.stages[stage].order) {
    const std::pair key(action.chunk, action.microBatch);
    const Frame now(plan.programOf(stage, action.chunk, action.microBatch),
                    plan.positionOf(action.part));
    frames.erase(key);
    const size_t at = static_cast<size_t>(instruction);
    if (now.first == program && parts[now.second] <= at &&
        at < parts[now.second + 1]) {
      int64_t bytes = handed + handedBytes(plan, plan.programs[program],
                                           parts[now.second], at + 1);
      for (const auto &[other, frame] : frames) {
        const auto [known, isNew] = held.try_emplace(frame, 0);
        if (isNew)
          known->second = Walker(plan).heldBehind(frame.first, frame.second);
        bytes += known->second;
      }
      if (bytes > most.bytes) {
        most.bytes = bytes;
        most.name = std::to_string(frames.size()) +
                    (partsBy(plan.schedule).size() == 2
                         ? " other micro-batches before their backward"
                         : " other micro-batches under way");
      }
    }
    const Program &run = plan.programs[now.first];
    const std::vector<size_t> partsOfRun = partsOf(run);
    handed += handedBytes(plan, run, partsOfRun[now.second],
                          partsOfRun[now.second + 1]);
    if (now.second + 2 < partsOfRun.size())
      frames[key] = now;
  }
  return most;
}

} // namespace

std::vector<LiveBuffer> liveBuffersAt(const Plan &plan, int program,
                                      int instruction) {
  std::vector<LiveBuffer> result = Walker(plan).at(program, instruction);
  const int stage = plan.programs[program].stage;
  if (plan.stages.empty() ||
      program == plan.evalOf(stage, plan.programs[program].chunk))
    return result;
  if (LiveBuffer others = othersAt(plan, program, std::max(instruction, 0));
      others.bytes > 0)
    result.push_back(std::move(others));
  return result;
}

} // namespace accel::plan
