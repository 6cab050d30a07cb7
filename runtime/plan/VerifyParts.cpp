//===- VerifyParts.cpp - Units and functions ------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/VerifyParts.h"

#include "runtime/plan/Mesh.h"
#include "runtime/plan/UpdateLayout.h"

namespace accel::plan {

namespace {

bool isFloating(DType dtype) {
  return dtype == DType::F64 || dtype == DType::F32 || dtype == DType::BF16 ||
         dtype == DType::F16;
}

bool contains(const std::vector<std::string> &list, const std::string &name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

/// The optimizer touches group ranges as a whole, so no frozen parameter may
/// lie in one and each trained one must lie in its group's.
void verifyGroups(const Plan &plan, const Unit &unit, Problems &problems) {
  const std::string at = "unit " + quoted(unit.name);
  int64_t before = 0;
  for (const Unit::GroupRange &range : unit.groupRanges) {
    if (range.begin < before || range.end < range.begin ||
        range.end > unit.padded)
      problems.add(at, "its optimizer groups overlap or leave the buffer");
    if (range.group < 0 ||
        static_cast<size_t>(range.group) >= plan.job.optimizer.groups.size())
      problems.add(at, "there is no optimizer group " +
                           std::to_string(range.group));
    before = std::max(before, range.end);
  }
  for (int index : unit.parameters) {
    const Parameter &p = plan.parameters[index];
    const int64_t end = p.offset + ownNumel(plan, p);
    bool covered = false;
    for (const Unit::GroupRange &range : unit.groupRanges) {
      if (range.end <= p.offset || end <= range.begin)
        continue;
      if (!p.trainable)
        problems.add(at,
                     "the optimizer would update the frozen " + quoted(p.fqn));
      covered |=
          range.group == p.group && range.begin <= p.offset && end <= range.end;
    }
    if (p.trainable && !covered && ownNumel(plan, p) > 0)
      problems.add(at, quoted(p.fqn) +
                           " is in no range of its optimizer group " +
                           std::to_string(p.group));
  }
}

void verifyUnit(const Plan &plan, int index, Problems &problems) {
  const Unit &unit = plan.units[index];
  const std::string at = "unit " + quoted(unit.name);
  const size_t before = problems.list.size();
  for (const std::vector<std::string> *axes :
       {&unit.shardAxes, &unit.replicateAxes})
    for (const std::string &axis : *axes) {
      if (std::none_of(plan.axes.begin(), plan.axes.end(),
                       [&](const Axis &a) { return a.name == axis; }))
        problems.add(at, "the mesh has no axis " + quoted(axis));
      if (std::count(axes->begin(), axes->end(), axis) > 1)
        problems.add(at, "the axis " + quoted(axis) + " is named twice");
    }
  for (const Axis &axis : plan.axes) {
    bool shards = contains(unit.shardAxes, axis.name);
    bool replicates = contains(unit.replicateAxes, axis.name);
    if (shards && replicates)
      problems.add(at, "it is both sharded and replicated over " +
                           quoted(axis.name));
    // The ranks of an axis inside of functions compute the same gradients, and
    // of experts that they share those of their own.
    const bool splits = isSplitOver(plan, unit, axis.name);
    if ((shards || replicates) && splits)
      problems.add(at, "its parameters are split over " + quoted(axis.name) +
                           ", which also shards or replicates it");
    if (!shards && !replicates && axis.size > 1 &&
        axisRole(axis.name) != AxisRole::Other && !splits)
      problems.add(at, "it is neither sharded nor replicated over " +
                           quoted(axis.name) +
                           ", so its gradients would differ between ranks");
  }
  for (DType dtype : {unit.storage, unit.gather, unit.reduce})
    if (!isFloating(dtype))
      problems.add(at, "parameters cannot be " + std::string(toString(dtype)));
  for (const State &state : unit.states)
    if (!isFloating(state.dtype))
      problems.add(at, "its state " + quoted(state.name) + " cannot be " +
                           toString(state.dtype));
  const std::vector<State> states = unitStates(plan, unit);
  if (unit.trainable && unit.states != states)
    problems.add(at, "it has " + std::to_string(unit.states.size()) +
                         " optimizer states, which are not the " +
                         std::to_string(states.size()) + " of " +
                         quoted(plan.job.optimizer.name));
  const OptimizerDescription *optimizer =
      findOptimizer(plan.job.optimizer.name);
  for (int p : unit.parameters)
    if (optimizer && optimizer->reads != UpdateReads::Elements &&
        plan.parameters[p].trainable && !plan.parameters[p].split.empty())
      problems.add(at, quoted(plan.parameters[p].fqn) + " is split, and " +
                           quoted(plan.job.optimizer.name) +
                           " reads whole parameters");
  if (problems.list.size() > before)
    return;

  const int64_t quantum = alignmentBytes * plan.shardRanks(unit);
  if (unit.padded % quantum)
    problems.add(at, "its padded size " + std::to_string(unit.padded) +
                         " is no multiple of " + std::to_string(quantum));
  const int64_t item = std::min(
      {itemSize(unit.storage), itemSize(unit.gather), itemSize(unit.reduce)});
  int64_t numel = 0, end = 0;
  bool trains = false;
  for (int p : unit.parameters) {
    const Parameter &parameter = plan.parameters[p];
    if (parameter.unit != ownerOf(plan, index))
      problems.add(at, quoted(parameter.fqn) + " belongs to another unit");
    if (parameter.offset * item % alignmentBytes)
      problems.add(at, quoted(parameter.fqn) + " starts at element " +
                           std::to_string(parameter.offset) +
                           ", which is not aligned to " +
                           std::to_string(alignmentBytes) + " bytes");
    if (parameter.offset < end)
      problems.add(at,
                   quoted(parameter.fqn) + " overlaps the parameter before it");
    end = parameter.offset + ownNumel(plan, parameter);
    numel += ownNumel(plan, parameter);
    trains |= parameter.trainable;
  }
  if (end > unit.padded)
    problems.add(at, "its parameters end at element " + std::to_string(end) +
                         ", behind its buffer of " +
                         std::to_string(unit.padded));
  if (numel != unit.numel)
    problems.add(at, "its parameters have " + std::to_string(numel) +
                         " elements, it says " + std::to_string(unit.numel));
  if (trains != unit.trainable)
    problems.add(at, trains ? "it has trainable parameters but is frozen"
                            : "it is trainable but all its parameters are "
                              "frozen");
  verifyGroups(plan, unit, problems);
}

class FunctionVerifier {
public:
  FunctionVerifier(const Function &function, Problems &problems)
      : function(function), problems(problems),
        state(function.slots.size(), State::Unmade),
        ended(function.slots.size()), owner(function.slots.size()) {}
  void run();

private:
  enum class State { Unmade, Live, Freed };
  enum class Owner { Function, Input, Param, Gradient };
  static const char *ownerName(Owner owner) {
    return owner == Owner::Input   ? "input"
           : owner == Owner::Param ? "parameter"
                                   : "gradient";
  }
  std::string slotName(int slot) const {
    return "slot " + std::to_string(slot);
  }
  void enter(const std::vector<int> &slots, Owner kind);
  void use(const std::string &place, int slot);
  void make(const std::string &place, int slot);
  void drop(const std::string &place, int slot, int instruction);

  const Function &function;
  Problems &problems;
  std::vector<State> state;
  std::vector<int> ended; // the instruction that freed it
  std::vector<Owner> owner;
};

void FunctionVerifier::enter(const std::vector<int> &slots, Owner kind) {
  const std::string at = "function " + quoted(function.name);
  for (int slot : slots) {
    if (state[slot] == State::Live)
      problems.add(at, slotName(slot) + " enters twice");
    if (function.slots[slot].base != slot)
      problems.add(at, slotName(slot) + " enters as a view");
    state[slot] = State::Live;
    owner[slot] = kind;
  }
}

void FunctionVerifier::use(const std::string &place, int slot) {
  if (state[slot] == State::Unmade)
    problems.add(place, "it reads " + slotName(slot) + " before it is made");
  if (state[slot] == State::Freed)
    problems.add(place, "it reads " + slotName(slot) + ", which instruction " +
                            std::to_string(ended[slot]) + " freed");
}

void FunctionVerifier::make(const std::string &place, int slot) {
  if (slot < 0)
    return;
  if (state[slot] != State::Unmade)
    problems.add(place, slotName(slot) + " is made twice");
  int base = function.slots[slot].base;
  // Whether the base's handle is gone does not matter, only that its storage
  // came into being: another view may hold it.
  if (base != slot && state[base] == State::Unmade)
    problems.add(place, slotName(slot) + " is a view of " + slotName(base) +
                            ", which is not made");
  state[slot] = State::Live;
}

void FunctionVerifier::drop(const std::string &place, int slot,
                            int instruction) {
  if (state[slot] == State::Unmade)
    problems.add(place, "it frees " + slotName(slot) + " before it is made");
  if (state[slot] == State::Freed)
    problems.add(place, "it frees " + slotName(slot) + ", which instruction " +
                            std::to_string(ended[slot]) + " freed already");
  if (owner[slot] == Owner::Param || owner[slot] == Owner::Gradient)
    problems.add(place, "it frees " + slotName(slot) + ", a " +
                            ownerName(owner[slot]) + " of the caller");
  state[slot] = State::Freed;
  ended[slot] = instruction;
}

void FunctionVerifier::run() {
  const std::string at = "function " + quoted(function.name);
  enter(function.inputs, Owner::Input);
  enter(function.params, Owner::Param);
  enter(function.gradients, Owner::Gradient);
  std::vector<bool> used(function.slots.size());
  for (size_t i = 0; i < function.instructions.size(); ++i) {
    const Instruction &instruction = function.instructions[i];
    const std::string place =
        at + ", instruction " + std::to_string(i) + " (" + instruction.op + ")";
    auto read = [&](int slot) {
      use(place, slot);
      used[slot] = true;
    };
    for (const Arg &arg : instruction.args) {
      if (arg.kind == Arg::Kind::Tensor)
        read(arg.slot);
      if (arg.kind == Arg::Kind::Tensors)
        for (int64_t slot : arg.ints)
          if (slot >= 0)
            read(slot);
    }
    for (int slot : instruction.results)
      make(place, slot);
    for (int slot : instruction.frees)
      drop(place, slot, i);
  }
  std::vector<bool> isOutput(function.slots.size());
  for (int slot : function.outputs) {
    isOutput[slot] = true;
    if (state[slot] != State::Live)
      problems.add(at, "its output " + slotName(slot) +
                           (state[slot] == State::Freed
                                ? " was freed by instruction " +
                                      std::to_string(ended[slot])
                                : std::string(" is never made")));
    Owner storage = owner[function.slots[slot].base];
    if (storage == Owner::Param || storage == Owner::Gradient)
      problems.add(at, "its output " + slotName(slot) + " is a view of a " +
                           ownerName(storage) + " of the caller");
  }
  for (size_t slot = 0; slot < state.size(); ++slot)
    if (state[slot] == State::Live && !isOutput[slot] &&
        owner[slot] == Owner::Function)
      problems.add(at, slotName(slot) + " is never freed");
  for (size_t i = 0; i < function.gradients.size(); ++i)
    if (!used[function.gradients[i]])
      problems.add(at, "it never writes the gradient of " +
                           quoted(function.gradientNames[i]));
}

} // namespace

/// That the unit's hook and the parts of it that each rank holds go together.
static void verifyForm(const Plan &plan, const Unit &unit, Problems &problems) {
  const std::string at = "unit " + quoted(unit.name);
  if (!unit.hook.empty() && unit.hook != "fp16" && unit.hook != "bf16")
    problems.add(at, "unknown hook " + quoted(unit.hook) +
                         ", expected fp16 or bf16");
  if (!unit.hook.empty() &&
      (!unit.shardAxes.empty() || unit.replicateAxes.empty()))
    problems.add(at, "a hook is of gradients that replicas alone reduce");
  if (unit.whole && readsShard(plan, unit))
    problems.add(at, "every rank holds it whole, but its shard holds "
                     "everything");
}

/// Stages that read the same parameters hold and shard them alike, and sum
/// their gradients.
static void verifyCopies(const Plan &plan, int index, Problems &problems) {
  const Unit &unit = plan.units[index];
  const std::string at = "unit " + quoted(unit.name);
  const std::vector<int64_t> stages = stagesWith(plan, index);
  if (std::adjacent_find(stages.begin(), stages.end()) != stages.end())
    problems.add(at, "a stage has its parameters twice");
  if (isTied(unit) != (stages.size() > 1))
    problems.add(at, stages.size() > 1
                         ? "several stages have its parameters, and its "
                           "gradients are not summed over " +
                               quoted(pipelineAxis)
                         : "one stage has its parameters, and its gradients "
                           "are summed over " +
                               quoted(pipelineAxis));
  if (unit.copyOf < 0)
    return;
  Unit alike = plan.units[unit.copyOf];
  if (alike.copyOf >= 0)
    return problems.add(at, "it is a copy of a copy");
  alike.name = unit.name;
  alike.stage = unit.stage;
  alike.copyOf = unit.copyOf;
  if (!(alike == unit))
    problems.add(at, "it is not laid out as unit " +
                         quoted(plan.units[unit.copyOf].name) +
                         ", of which it is a copy");
}

void verifyUnits(const Plan &plan, Problems &problems) {
  verifyOffload(plan, problems);
  for (const Unit &unit : plan.units)
    verifyForm(plan, unit, problems);
  std::vector<int> listed(plan.parameters.size());
  for (size_t i = 0; i < plan.units.size(); ++i) {
    verifyCopies(plan, static_cast<int>(i), problems);
    if (plan.units[i].copyOf < 0)
      for (int parameter : plan.units[i].parameters)
        listed[parameter]++;
  }
  for (size_t i = 0; i < listed.size(); ++i)
    if (listed[i] != 1)
      problems.add("parameter " + quoted(plan.parameters[i].fqn),
                   listed[i] ? "more than one unit lists it"
                             : "no unit lists it");
  for (size_t i = 0; i < plan.units.size(); ++i)
    verifyUnit(plan, i, problems);
}

void verifyFunctions(const Plan &plan, Problems &problems) {
  for (const Function &function : plan.functions)
    FunctionVerifier(function, problems).run();
}

} // namespace accel::plan
