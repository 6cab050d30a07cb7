//===- Timeline.cpp - Bytes live after each instruction -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Timeline.h"

#include "runtime/plan/Chunks.h"
#include "runtime/plan/DiskLayout.h"
#include "runtime/plan/Liveness.h"
#include "runtime/plan/UpdateLayout.h"

#include <algorithm>
#include <map>
#include <optional>

namespace accel::plan {

namespace {

/// Logits are what ends in the vocabulary and has a row per token.
bool isLogits(const Job &job, const std::vector<int64_t> &shape) {
  if (job.vocab <= 1 || shape.size() < 2 || shape.back() != job.vocab)
    return false;
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i)
    rows *= shape[i];
  return rows <= std::max<int64_t>(job.microBatch * job.sequenceLength, 1);
}

int64_t total(const Breakdown &b) {
  return b.parameters + b.gradients + b.optimizer + b.activations + b.logits +
         b.gathered + b.buffers;
}

/// What calls of a plan's functions take, each measured once.
struct KnownCalls {
  struct Cached {
    std::vector<int64_t> consumed;
    FunctionProfile profile;
  };
  explicit KnownCalls(const Plan &plan)
      : cache(plan.functions.size()), functions(plan.functions.size()) {}
  std::vector<std::vector<Cached>> cache; // by function
  std::vector<std::optional<Liveness>> functions;
};

/// Runs one program over counters by category.
class Simulator {
public:
  /// `start` is what is held before the program's inputs are bound.
  Simulator(const Plan &plan, const Program &program, KnownCalls &known,
            const Breakdown &start);

  /// Instructions [from, to).
  ProgramTimeline run(size_t from, size_t to);
  ProgramTimeline run() { return run(0, program.instructions.size()); }
  /// What stays once the values are dropped: the next program's start.
  Breakdown carried() const;

  /// What the rank holds: other frames change it between two runs.
  Breakdown now;

private:
  using Cached = KnownCalls::Cached;
  /// One call's effect on memory.
  struct CallEffect {
    std::vector<int64_t> consumed; // by input
    FunctionProfile profile;
    int64_t droppedOutputs = 0;
  };

  int rootOf(int value) const { return plan::rootOf(program, value); }
  int64_t &category(int value) {
    if (isInput[value])
      return now.buffers;
    return isLogits(plan.job, program.values[value].shape) ? now.logits
                                                           : now.activations;
  }
  /// Of copies for the next chunk of the same ranks, which no frame has yet.
  int64_t &handed(int value) {
    return isLogits(plan.job, program.values[value].shape) ? now.logits
                                                           : now.activations;
  }
  int64_t &category(Role role) {
    switch (role) {
    case Role::Gathered:
      return now.gathered;
    case Role::Receive:
      return now.buffers;
    default:
      return now.gradients;
    }
  }
  void define(int value);
  void drop(int value);
  CallEffect call(const ProgramInstruction &instruction);
  void addFunctionAt(Breakdown &breakdown,
                     const ProgramInstruction &instruction,
                     const CallEffect &effect, int inner) const;
  const Liveness &livenessOf(int function);
  int64_t updateWorkspace(int unit) const {
    return optimizer.description && !optimizer.isFlat()
               ? updateWork(optimizer, updateShape(plan, plan.units[unit]),
                            plan.device)
                     .workspaceBytes
               : 0;
  }

  const Plan &plan;
  const Program &program;
  const OptimizerRule optimizer;
  KnownCalls &known;
  std::vector<int> handles; // live values per root
  std::vector<bool> live, isInput;
};

Simulator::Simulator(const Plan &plan, const Program &program,
                     KnownCalls &known, const Breakdown &start)
    : now(start), plan(plan), program(program), optimizer(plan.job.optimizer),
      known(known), handles(program.values.size()), live(program.values.size()),
      isInput(program.values.size()) {
  for (int value : program.inputs) {
    isInput[value] = true;
    define(value);
  }
}

const Liveness &Simulator::livenessOf(int function) {
  std::optional<Liveness> &liveness = known.functions[function];
  if (!liveness)
    liveness.emplace(plan.functions[function]);
  return *liveness;
}

void Simulator::define(int value) {
  if (live[value])
    return;
  live[value] = true;
  int root = rootOf(value);
  if (handles[root]++ == 0)
    category(root) += program.values[root].bytes;
}

void Simulator::drop(int value) {
  if (!live[value])
    return;
  live[value] = false;
  int root = rootOf(value);
  if (--handles[root] == 0)
    category(root) -= program.values[root].bytes;
}

Simulator::CallEffect Simulator::call(const ProgramInstruction &instruction) {
  const Function &function = plan.functions[instruction.function];
  const Liveness &liveness = livenessOf(instruction.function);
  CallEffect effect;
  effect.consumed.assign(function.inputs.size(), 0);

  // A storage leaves with the call if no value is left on it: it is charged to
  // the input that keeps it longest inside the function.
  std::vector<int> leaving;
  for (size_t i = 0; i < instruction.inputs.size(); ++i)
    if (i < instruction.consumed.size() && instruction.consumed[i] &&
        live[instruction.inputs[i]]) {
      live[instruction.inputs[i]] = false;
      int root = rootOf(instruction.inputs[i]);
      if (--handles[root] == 0)
        leaving.push_back(root);
    }
  std::vector<int> newRoots;
  for (int value : instruction.outputs)
    if (value >= 0 && !live[value]) {
      live[value] = true;
      int root = rootOf(value);
      if (handles[root]++ == 0 && root == value)
        newRoots.push_back(root);
    }
  for (int root : leaving) {
    if (handles[root] > 0)
      continue;
    int last = -1;
    for (size_t i = 0; i < instruction.inputs.size(); ++i)
      if (rootOf(instruction.inputs[i]) == root &&
          (last < 0 || liveness.inputDeath[i] > liveness.inputDeath[last]))
        last = i;
    effect.consumed[last] = program.values[root].bytes;
  }

  std::vector<Cached> &cached = known.cache[instruction.function];
  auto hit = std::find_if(cached.begin(), cached.end(), [&](const Cached &c) {
    return c.consumed == effect.consumed;
  });
  if (hit == cached.end()) {
    cached.push_back(
        {effect.consumed, profile(function, liveness, effect.consumed)});
    hit = cached.end() - 1;
  }
  effect.profile = hit->profile;

  for (int root : leaving)
    if (handles[root] == 0)
      category(root) -= program.values[root].bytes;
  for (int root : newRoots)
    category(root) += program.values[root].bytes;
  return effect;
}

/// Adds what a call holds at one of its instructions to what the program held
/// before the call.
void Simulator::addFunctionAt(Breakdown &breakdown,
                              const ProgramInstruction &instruction,
                              const CallEffect &effect, int inner) const {
  const Function &function = plan.functions[instruction.function];
  const Liveness &liveness = *known.functions[instruction.function];
  for (size_t i = 0; i < effect.consumed.size(); ++i) {
    if (effect.consumed[i] == 0 || liveness.inputDeath[i] >= inner)
      continue;
    int root = rootOf(instruction.inputs[i]);
    int64_t &from = isInput[root] ? breakdown.buffers
                    : isLogits(plan.job, program.values[root].shape)
                        ? breakdown.logits
                        : breakdown.activations;
    from -= effect.consumed[i];
  }
  std::vector<int> count(function.slots.size());
  std::vector<bool> owned(function.slots.size());
  for (int i = 0; i <= inner; ++i) {
    for (int slot : function.instructions[i].results)
      if (slot >= 0) {
        count[baseOf(function, slot)]++;
        owned[slot] = owned[slot] || baseOf(function, slot) == slot;
      }
    if (i < inner)
      for (int slot : function.instructions[i].frees)
        count[baseOf(function, slot)]--;
  }
  for (size_t slot = 0; slot < owned.size(); ++slot)
    if (owned[slot] && count[slot] > 0)
      (isLogits(plan.job, function.slots[slot].shape)
           ? breakdown.logits
           : breakdown.activations) += function.slotBytes(slot);
  breakdown.buffers += function.instructions[inner].workspaceBytes;
}

ProgramTimeline Simulator::run(size_t from, size_t to) {
  ProgramTimeline timeline;
  timeline.instructions.reserve(to - from);
  timeline.peakBytes = timeline.peakTotalBytes = total(now);
  timeline.breakdown = now;
  CallEffect atPeak;
  for (size_t i = from; i < to; ++i) {
    const ProgramInstruction &instruction = program.instructions[i];
    InstructionMemory memory;
    const int64_t before = total(now);
    memory.peakBytes = memory.peakTotalBytes = before;
    const Breakdown start = now;
    int64_t workspace = 0;
    CallEffect effect;
    switch (instruction.kind) {
    case ProgramInstructionKind::Alloc:
      category(instruction.role) +=
          roleBytes(plan, plan.units[instruction.unit], instruction.role);
      memory.peakBytes = memory.peakTotalBytes = total(now);
      break;
    case ProgramInstructionKind::Free:
      if (instruction.unit >= 0)
        category(instruction.role) -=
            roleBytes(plan, plan.units[instruction.unit], instruction.role);
      for (int value : instruction.values)
        drop(value);
      break;
    case ProgramInstructionKind::Call:
      effect = call(instruction);
      memory.peakBytes = before + effect.profile.peakBytes;
      memory.peakTotalBytes = before + effect.profile.peakTotalBytes;
      memory.peakInstruction = effect.profile.peakInstruction;
      break;
    case ProgramInstructionKind::Optimizer:
      workspace = updateWorkspace(instruction.unit);
      memory.peakBytes = memory.peakTotalBytes = before + workspace;
      break;
    case ProgramInstructionKind::Send:
      if (!staysInStage(plan, program, instruction))
        break;
      handed(instruction.inputs[0]) +=
          denseBytes(program.values[instruction.inputs[0]]);
      memory.peakBytes = memory.peakTotalBytes = total(now);
      break;
    case ProgramInstructionKind::Receive:
      // It is what was handed over.
      if (staysInStage(plan, program, instruction))
        handed(instruction.outputs[0]) -=
            program.values[instruction.outputs[0]].bytes;
      [[fallthrough]];
    case ProgramInstructionKind::Fetch:
      for (int value : instruction.outputs)
        define(value);
      memory.peakBytes = memory.peakTotalBytes = total(now);
      break;
    default:
      break;
    }
    memory.liveBytes = total(now);
    timeline.peakBytes = std::max(timeline.peakBytes, memory.peakBytes);
    if (memory.peakTotalBytes > timeline.peakTotalBytes) {
      timeline.peakTotalBytes = memory.peakTotalBytes;
      timeline.peakInstruction = i;
      timeline.breakdown =
          instruction.kind == ProgramInstructionKind::Call ? start : now;
      timeline.breakdown.buffers += workspace;
      atPeak = std::move(effect);
    }
    timeline.instructions.push_back(memory);
  }
  timeline.endBytes = total(now);
  if (timeline.peakInstruction >= 0) {
    int instruction =
        timeline.instructions[timeline.peakInstruction - from].peakInstruction;
    if (instruction >= 0)
      addFunctionAt(timeline.breakdown,
                    program.instructions[timeline.peakInstruction], atPeak,
                    instruction);
  }
  return timeline;
}

Breakdown Simulator::carried() const {
  Breakdown result = now;
  for (size_t value = 0; value < handles.size(); ++value) {
    if (handles[value] == 0)
      continue;
    int64_t &from = isInput[value] ? result.buffers
                    : isLogits(plan.job, program.values[value].shape)
                        ? result.logits
                        : result.activations;
    from -= program.values[value].bytes;
  }
  return result;
}

int64_t shardBytes(const Plan &plan, const Unit &unit) {
  return alignedBytes(shardNumel(plan, unit) * itemSize(unit.storage));
}

Breakdown persistent(const Plan &plan, int stage) {
  Breakdown result;
  for (const Unit &unit : plan.units) {
    if (unit.stage != stage)
      continue;
    if (!plan.offload.parameters)
      result.parameters += shardBytes(plan, unit);
    if (!plan.offload.states)
      result.optimizer += stateBytes(plan, unit);
    if (unit.whole)
      result.gathered += roleBytes(plan, unit, Role::Gathered);
  }
  result.buffers += plan.keptWorkspaceBytes;
  for (const Value *buffer : buffersOf(plan, stage))
    result.buffers += denseBytes(*buffer);
  return result;
}

/// "model.layers.*.mlp" called at "model.layers.3" is "model.layers.3.mlp".
std::string bindPath(const std::string &pattern, const std::string &path) {
  size_t star = pattern.find('*');
  if (star == std::string::npos || pattern.compare(0, star, path, 0, star) != 0)
    return pattern;
  size_t end = path.find_first_of(". ", star);
  return pattern.substr(0, star) +
         path.substr(star, end == std::string::npos ? end : end - star) +
         pattern.substr(star + 1);
}

std::string placeOf(const Plan &plan, const Program &program, int instruction,
                    int inner) {
  if (instruction < 0)
    return "the start of " + program.name;
  const ProgramInstruction &at = program.instructions[instruction];
  std::string where = at.where;
  if (where.empty() && at.unit >= 0)
    where = plan.units[at.unit].name;
  if (at.kind != ProgramInstructionKind::Call)
    return std::string(toString(at.kind)) +
           (at.kind == ProgramInstructionKind::Alloc
                ? std::string(" ") + toString(at.role)
                : std::string()) +
           (where.empty() ? "" : " of " + where);
  const Function &function = plan.functions[at.function];
  if (inner < 0)
    return function.name + (where.empty() ? "" : " at " + where);
  const Instruction &op = function.instructions[inner];
  std::string bound = bindPath(op.where, where);
  return op.op + (bound.empty() ? "" : " of " + bound) + " in " + function.name;
}

} // namespace

int64_t persistentBytes(const Plan &plan, int stage) {
  return total(persistent(plan, stage));
}

ProgramTimeline simulate(const Plan &plan, const Program &program,
                         int64_t startBytes) {
  Breakdown start = persistent(plan, program.stage);
  start.gradients = startBytes - total(start);
  KnownCalls known(plan);
  return Simulator(plan, program, known, start).run();
}

namespace {

/// Runs the step and the evaluation of one stage's ranks.
class StagePeaks {
public:
  StagePeaks(Plan &plan, int stage,
             std::vector<ProgramTimeline> *timelines = nullptr)
      : plan(plan), stage(stage), known(plan), totals(plan.programs.size(), -1),
        predicted(plan.predicted), timelines(timelines) {}

  Predicted run() {
    const Breakdown persists = persistent(plan, stage);
    predicted.persistentBytes = total(persists);
    predicted.peakBytes = predicted.ownPeakBytes = predicted.persistentBytes;
    predicted.breakdown = persists;
    predicted.peakProgram.clear();
    predicted.peakWhere.clear();
    predicted.peakInstruction = -1;
    if (plan.stages.empty())
      runInTurn(persists);
    else
      runFrames(persists);
    Breakdown evaluates = persists; // one chunk may hand over to the next
    for (int chunk = 0; chunk < plan.numChunks(); ++chunk)
      if (plan.evalOf(stage, chunk) >= 0)
        evaluates = runWhole(plan.evalOf(stage, chunk), evaluates);
    return predicted;
  }

private:
  void runInTurn(Breakdown carried) {
    for (const auto &[index, repeat] : plan.step) {
      Breakdown before;
      // A repetition that starts as the one before it changes nothing.
      for (int64_t i = 0; i < repeat && (i == 0 || !(carried == before)); ++i) {
        before = carried;
        carried = runWhole(index, carried);
        if (i >= 2) // unstable: `verify` refuses such a plan
          break;
      }
    }
  }

  /// Each micro-batch keeps its values from its forward to its backward, while
  /// others run.
  void runFrames(Breakdown now) {
    std::map<std::pair<int, int64_t>, Simulator> frames; // chunk, micro-batch
    for (const StageAction &action : plan.stages[stage].order) {
      const std::pair key(action.chunk, action.microBatch);
      const int index = plan.programOf(stage, action.chunk, action.microBatch);
      if (index < 0)
        continue; // `verify` refuses it
      const Program &program = plan.programs[index];
      const std::vector<size_t> parts = partsOf(program);
      const size_t part = plan.positionOf(action.part);
      auto at = frames.find(key);
      if ((part == 0) != (at == frames.end()) || part + 1 >= parts.size())
        continue; // as well
      if (part == 0)
        at = frames.try_emplace(key, plan, program, known, now).first;
      else
        at->second.now = now;
      const auto timeline = at->second.run(parts[part], parts[part + 1]);
      note(index, timeline, parts[part]);
      if (timelines)
        timelines->push_back(timeline);
      now = at->second.now;
      if (part + 2 < parts.size())
        continue;
      now = at->second.carried();
      frames.erase(at);
    }
  }

  Breakdown runWhole(int index, const Breakdown &start) {
    Simulator simulator(plan, plan.programs[index], known, start);
    note(index, simulator.run(), 0);
    return simulator.carried();
  }

  /// Instructions of the timeline start with `first`.
  void note(int index, const ProgramTimeline &timeline, size_t first) {
    Program &program = plan.programs[index];
    program.peakBytes = std::max(program.peakBytes, timeline.peakBytes);
    predicted.ownPeakBytes =
        std::max(predicted.ownPeakBytes, timeline.peakBytes);
    if (timeline.peakTotalBytes > totals[index]) {
      totals[index] = timeline.peakTotalBytes;
      program.peakInstruction = timeline.peakInstruction;
    }
    if (timeline.peakTotalBytes <= predicted.peakBytes &&
        !predicted.peakProgram.empty())
      return;
    predicted.peakBytes = timeline.peakTotalBytes;
    predicted.breakdown = timeline.breakdown;
    predicted.peakProgram = program.name;
    predicted.peakInstruction = timeline.peakInstruction;
    predicted.peakWhere =
        placeOf(plan, program, timeline.peakInstruction,
                timeline.peakInstruction < 0
                    ? -1
                    : timeline.instructions[timeline.peakInstruction - first]
                          .peakInstruction);
  }

  Plan &plan;
  const int stage;
  KnownCalls known;
  std::vector<int64_t> totals; // by program
  Predicted predicted;
  std::vector<ProgramTimeline> *const timelines; // of parts; or null
};

} // namespace

std::vector<ProgramTimeline> simulateStage(const Plan &plan, int stage) {
  std::vector<ProgramTimeline> timelines;
  Plan changed = plan; // its predictions
  StagePeaks(changed, stage, &timelines).run();
  return timelines;
}

void predictMemory(Plan &plan) {
  for (Program &program : plan.programs) {
    program.peakBytes = 0;
    program.peakInstruction = -1;
  }
  std::optional<Predicted> most;
  int64_t ownPeak = 0;
  for (int stage = 0; stage < plan.numStages(); ++stage) {
    const Predicted own = StagePeaks(plan, stage).run();
    if (!plan.stages.empty()) {
      Stage &at = plan.stages[stage];
      at.peakBytes = own.peakBytes;
      at.ownPeakBytes = own.ownPeakBytes;
      at.persistentBytes = own.persistentBytes;
    }
    ownPeak = std::max(ownPeak, own.ownPeakBytes);
    if (!most || own.peakBytes > most->peakBytes)
      most = own;
  }
  plan.predicted = *most;
  plan.predicted.ownPeakBytes = ownPeak;
  plan.predicted.hostBytes = plan.predicted.diskBytes = 0;
  for (int stage = 0; stage < plan.numStages(); ++stage) {
    plan.predicted.hostBytes =
        std::max(plan.predicted.hostBytes, hostBytes(plan, stage));
    plan.predicted.diskBytes =
        std::max(plan.predicted.diskBytes, diskBytes(plan, stage));
  }
}

} // namespace accel::plan
