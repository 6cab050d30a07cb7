//===- Timeline.cpp - Bytes live after each instruction -------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Timeline.h"

#include "runtime/plan/UpdateLayout.h"

#include <algorithm>
#include <optional>

namespace accel::plan {

namespace {

int baseOf(const Function &function, int slot) {
  int base = function.slots[slot].base;
  return base < 0 ? slot : base;
}

/// Logits are what ends in the vocabulary and has a row per token.
bool isLogits(const Job &job, const std::vector<int64_t> &shape) {
  if (job.vocab <= 1 || shape.size() < 2 || shape.back() != job.vocab)
    return false;
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i)
    rows *= shape[i];
  return rows <= std::max<int64_t>(job.microBatch * job.sequenceLength, 1);
}

/// What each instruction of a function makes and drops, whoever calls it.
class Liveness {
public:
  explicit Liveness(const Function &function);

  std::vector<int64_t> made, dropped; // per instruction
  int64_t leaked = 0;                 // made, never freed and not an output
  /// Instruction after which input i's storage has no slot left; the number of
  /// instructions if that is at the return.
  std::vector<int> inputDeath;
};

Liveness::Liveness(const Function &function) {
  const int numInstructions = function.instructions.size();
  made.resize(numInstructions);
  dropped.resize(numInstructions);
  inputDeath.assign(function.inputs.size(), numInstructions);
  std::vector<int> handles(function.slots.size());
  std::vector<bool> owned(function.slots.size()), alive(function.slots.size());
  std::vector<int> inputOf(function.slots.size(), -1);
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    inputOf[function.inputs[i]] = i;
    handles[baseOf(function, function.inputs[i])]++;
    alive[function.inputs[i]] = true;
  }
  for (int i = 0; i < numInstructions; ++i) {
    const Instruction &instruction = function.instructions[i];
    for (int slot : instruction.results) {
      if (slot < 0)
        continue;
      int base = baseOf(function, slot);
      handles[base]++;
      alive[slot] = true;
      if (base == slot) {
        owned[base] = true;
        made[i] += function.slotBytes(slot);
      }
    }
    for (int slot : instruction.frees) {
      if (!alive[slot])
        continue;
      alive[slot] = false;
      int base = baseOf(function, slot);
      if (--handles[base] > 0)
        continue;
      if (owned[base]) {
        owned[base] = false;
        dropped[i] += function.slotBytes(base);
      } else if (inputOf[base] >= 0) {
        inputDeath[inputOf[base]] = i;
      }
    }
  }
  for (int slot : function.outputs)
    owned[baseOf(function, slot)] = false;
  for (size_t base = 0; base < owned.size(); ++base)
    if (owned[base])
      leaked += function.slotBytes(base);
}

FunctionProfile profile(const Function &function, const Liveness &liveness,
                        const std::vector<int64_t> &consumedBytes) {
  const size_t numInstructions = function.instructions.size();
  std::vector<std::pair<int, int64_t>> consumed; // by death
  int64_t atReturn = 0;
  for (size_t i = 0; i < consumedBytes.size(); ++i) {
    if (consumedBytes[i] == 0)
      continue;
    if (static_cast<size_t>(liveness.inputDeath[i]) < numInstructions)
      consumed.emplace_back(liveness.inputDeath[i], consumedBytes[i]);
    else
      atReturn += consumedBytes[i];
  }
  std::sort(consumed.begin(), consumed.end());

  FunctionProfile result;
  int64_t live = 0;
  size_t next = 0;
  for (size_t i = 0; i < numInstructions; ++i) {
    live += liveness.made[i];
    result.peakBytes = std::max(result.peakBytes, live);
    int64_t total = live + function.instructions[i].workspaceBytes;
    if (total > result.peakTotalBytes) {
      result.peakTotalBytes = total;
      result.peakInstruction = i;
    }
    live -= liveness.dropped[i];
    for (; next < consumed.size() &&
           static_cast<size_t>(consumed[next].first) == i;
         ++next)
      live -= consumed[next].second;
  }
  result.endBytes = live - liveness.leaked - atReturn;
  return result;
}

int64_t total(const Breakdown &b) {
  return b.parameters + b.gradients + b.optimizer + b.activations + b.logits +
         b.gathered + b.buffers;
}

/// Runs one program over counters by category.
class Simulator {
public:
  Simulator(const Plan &plan, const Program &program, const Breakdown &start);

  ProgramTimeline run();
  /// What stays once the values are dropped: the next program's start.
  Breakdown carried() const;

private:
  struct Cached {
    std::vector<int64_t> consumed;
    FunctionProfile profile;
  };
  /// One call's effect on memory.
  struct CallEffect {
    std::vector<int64_t> consumed; // by input
    FunctionProfile profile;
    int64_t droppedOutputs = 0;
  };

  int rootOf(int value) const {
    int alias = program.values[value].alias;
    return alias < 0 ? value : alias;
  }
  int64_t &category(int value) {
    if (isInput[value])
      return now.buffers;
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
  Breakdown now;
  std::vector<int> handles; // live values per root
  std::vector<bool> live, isInput;
  std::vector<std::vector<Cached>> cache; // per function
  std::vector<std::optional<Liveness>> functions;
};

Simulator::Simulator(const Plan &plan, const Program &program,
                     const Breakdown &start)
    : plan(plan), program(program), optimizer(plan.job.optimizer), now(start),
      handles(program.values.size()), live(program.values.size()),
      isInput(program.values.size()), cache(plan.functions.size()),
      functions(plan.functions.size()) {
  for (int value : program.inputs) {
    isInput[value] = true;
    define(value);
  }
}

const Liveness &Simulator::livenessOf(int function) {
  if (!functions[function])
    functions[function].emplace(plan.functions[function]);
  return *functions[function];
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

  std::vector<Cached> &known = cache[instruction.function];
  auto hit = std::find_if(known.begin(), known.end(), [&](const Cached &c) {
    return c.consumed == effect.consumed;
  });
  if (hit == known.end()) {
    known.push_back(
        {effect.consumed, profile(function, liveness, effect.consumed)});
    hit = known.end() - 1;
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
  const Liveness &liveness = *functions[instruction.function];
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

ProgramTimeline Simulator::run() {
  ProgramTimeline timeline;
  timeline.instructions.reserve(program.instructions.size());
  timeline.peakBytes = timeline.peakTotalBytes = total(now);
  timeline.breakdown = now;
  CallEffect atPeak;
  for (size_t i = 0; i < program.instructions.size(); ++i) {
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
        timeline.instructions[timeline.peakInstruction].peakInstruction;
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

Breakdown persistent(const Plan &plan) {
  Breakdown result;
  for (const Unit &unit : plan.units) {
    result.parameters +=
        alignedBytes(shardNumel(plan, unit) * itemSize(unit.storage));
    result.optimizer += stateBytes(plan, unit);
  }
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

FunctionProfile profileFunction(const Function &function,
                                const std::vector<int64_t> &consumedBytes) {
  return profile(function, Liveness(function), consumedBytes);
}

std::vector<int> inputDeaths(const Function &function) {
  return Liveness(function).inputDeath;
}

int64_t persistentBytes(const Plan &plan) { return total(persistent(plan)); }

ProgramTimeline simulate(const Plan &plan, const Program &program,
                         int64_t startBytes) {
  Breakdown start = persistent(plan);
  start.gradients = startBytes - total(start);
  return Simulator(plan, program, start).run();
}

void predictMemory(Plan &plan) {
  Predicted &predicted = plan.predicted;
  const Breakdown persists = persistent(plan);
  predicted.persistentBytes = total(persists);
  predicted.peakBytes = predicted.ownPeakBytes = predicted.persistentBytes;
  predicted.breakdown = persists;
  predicted.peakProgram.clear();
  predicted.peakWhere.clear();
  predicted.peakInstruction = -1;
  for (Program &program : plan.programs) {
    program.peakBytes = 0;
    program.peakInstruction = -1;
  }
  std::vector<int64_t> totals(plan.programs.size(), -1);

  auto runOnce = [&](int index, const Breakdown &start) {
    Program &program = plan.programs[index];
    Simulator simulator(plan, program, start);
    ProgramTimeline timeline = simulator.run();
    program.peakBytes = std::max(program.peakBytes, timeline.peakBytes);
    predicted.ownPeakBytes =
        std::max(predicted.ownPeakBytes, timeline.peakBytes);
    if (timeline.peakTotalBytes > totals[index]) {
      totals[index] = timeline.peakTotalBytes;
      program.peakInstruction = timeline.peakInstruction;
    }
    if (timeline.peakTotalBytes > predicted.peakBytes ||
        predicted.peakProgram.empty()) {
      predicted.peakBytes = timeline.peakTotalBytes;
      predicted.breakdown = timeline.breakdown;
      predicted.peakProgram = program.name;
      predicted.peakInstruction = timeline.peakInstruction;
      predicted.peakWhere =
          placeOf(plan, program, timeline.peakInstruction,
                  timeline.peakInstruction < 0
                      ? -1
                      : timeline.instructions[timeline.peakInstruction]
                            .peakInstruction);
    }
    return simulator.carried();
  };

  Breakdown carried = persists;
  for (const auto &[index, repeat] : plan.step) {
    Breakdown before;
    // A repetition that starts as the one before it changes nothing.
    for (int64_t i = 0; i < repeat && (i == 0 || !(carried == before)); ++i) {
      before = carried;
      carried = runOnce(index, carried);
      if (i >= 2) // unstable: `verify` refuses such a plan
        break;
    }
  }
  if (plan.eval >= 0)
    runOnce(plan.eval, persists);
}

} // namespace accel::plan
