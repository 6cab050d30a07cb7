//===- VerifyProgram.cpp - Buffers, collectives and values ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A rank is run symbolically through the programs of an optimizer step: what
// exists, what is in flight, what a buffer holds. Buffers of units outlive a
// program, so the state is carried from one to the next.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/ProgramVerifier.h"

#include <algorithm>

namespace accel::plan {

bool ProgramVerifier::usable(int unit, Role role, Stream stream,
                             const char *verb) {
  const BufferState &buffer = state.units[unit][role];
  if (!buffer.live)
    complain(std::string(verb) + " " + bufferName(unit, role) +
             ", which is not allocated");
  else if (buffer.inFlight)
    complain(std::string(verb) + " " + bufferName(unit, role) +
             " while a collective on it is in flight");
  else if (buffer.seenBy != Stream::Compute && buffer.seenBy != stream)
    complain(std::string(verb) + " " + bufferName(unit, role) + " on stream " +
             toString(stream) + ", but it was awaited on stream " +
             toString(buffer.seenBy));
  else
    return true;
  return false;
}

bool ProgramVerifier::useValue(int value, const char *verb) {
  if (live[value] && !isOnItsWay(fetched, value))
    return true;
  if (live[value]) {
    complain(std::string(verb) + " " + valueName(value) +
             " before its copy from the host is awaited");
    return false;
  }
  complain(
      std::string(verb) + " " + valueName(value) +
      (defined[value] ? ", which is freed already" : " before it is made"));
  return false;
}

bool ProgramVerifier::allWritten(int unit, const char *verb) {
  for (int p : plan.units[unit].parameters)
    if (plan.parameters[p].trainable && !state.written[p]) {
      complain(std::string(verb) + " the gradients of unit " +
               quoted(plan.units[unit].name) + ", but that of " +
               quoted(plan.parameters[p].fqn) + " is not written");
      return false;
    }
  return true;
}

void ProgramVerifier::clearWritten(int unit) {
  for (int p : plan.units[unit].parameters)
    state.written[p] = false;
}

void ProgramVerifier::alloc(const ProgramInstruction &instruction) {
  UnitState &unit = state.units[instruction.unit];
  const Unit &layout = plan.units[instruction.unit];
  if (unit[instruction.role].live)
    complain("it allocates " + bufferName(instruction.unit, instruction.role) +
             " twice");
  if (instruction.role == Role::Gathered && readsShard(plan, layout))
    complain("unit " + quoted(layout.name) +
             " needs no gathered buffer: its shard holds everything");
  if (instruction.role == Role::Gradient && writesShardGradient(plan, layout))
    complain("unit " + quoted(layout.name) +
             " needs no gradient buffer: gradients go to the shard's");
  unit[instruction.role] = BufferState{true, false, instruction.stream};
  if (instruction.role == Role::Gathered)
    unit.gathered = unit.stale = false;
  if (instruction.role == Role::ShardGradient)
    unit.reduced = unit.allReduced = false;
  if (instruction.role == (writesShardGradient(plan, layout)
                               ? Role::ShardGradient
                               : Role::Gradient))
    clearWritten(instruction.unit);
}

void ProgramVerifier::free(const ProgramInstruction &instruction) {
  for (int value : instruction.values) {
    useValue(value, "it frees");
    giveUp(value);
  }
  if (instruction.unit < 0)
    return;
  UnitState &unit = state.units[instruction.unit];
  const Unit &layout = plan.units[instruction.unit];
  if (!unit[instruction.role].live)
    complain("it frees " + bufferName(instruction.unit, instruction.role) +
             ", which is not allocated");
  else
    usable(instruction.unit, instruction.role, instruction.stream, "it frees");
  const bool direct = writesShardGradient(plan, layout);
  bool pending = false;
  for (int p : layout.parameters)
    pending |= state.written[p];
  if (instruction.role == Role::Gradient && pending)
    complain("it frees the gradients of unit " + quoted(layout.name) +
             " before they are reduced");
  if (instruction.role == Role::ShardGradient && !unit.updated &&
      !unit.offloaded && (direct ? pending : unit.reduced))
    complain("it frees the gradients of unit " + quoted(layout.name) +
             " before its update");
  unit[instruction.role] = BufferState{};
  if (instruction.role == Role::Gathered)
    unit.gathered = unit.stale = false;
  if (instruction.role == Role::ShardGradient) {
    unit.reduced = unit.allReduced = false;
    if (direct)
      clearWritten(instruction.unit);
  }
}

void ProgramVerifier::start(const ProgramInstruction &instruction, int index) {
  UnitState &unit = state.units[instruction.unit];
  const Unit &layout = plan.units[instruction.unit];
  Flight flight{instruction.unit, {}, index};
  const std::vector<std::string> &axes =
      instruction.kind == ProgramInstructionKind::AllReduce
          ? layout.replicateAxes
          : layout.shardAxes;
  if (instruction.axes != axes)
    complain("its mesh axes are not those of unit " + quoted(layout.name));
  switch (instruction.kind) {
  case ProgramInstructionKind::AllGather:
    if (readsShard(plan, layout)) {
      complain("unit " + quoted(layout.name) + " has nothing to gather");
      return;
    }
    usable(instruction.unit, Role::Gathered, instruction.stream,
           "it gathers into");
    unit.gathered = true;
    unit.stale = false;
    flight.roles = {Role::Gathered};
    break;
  case ProgramInstructionKind::ReduceScatter: {
    if (instruction.algorithm != "direct" &&
        instruction.algorithm != "all_to_all")
      complain("unknown algorithm " + quoted(instruction.algorithm));
    if (writesShardGradient(plan, layout)) {
      complain("unit " + quoted(layout.name) +
               " has nothing to reduce over "
               "its shards");
      return;
    }
    flight.roles = {Role::Gradient, Role::ShardGradient};
    if (instruction.algorithm == "all_to_all" && plan.shardRanks(layout) > 1)
      flight.roles.push_back(Role::Receive);
    for (Role role : flight.roles)
      usable(instruction.unit, role, instruction.stream, "it reduces with");
    allWritten(instruction.unit, "it reduces");
    if (unit.allReduced)
      complain("it adds to the gradients of unit " + quoted(layout.name) +
               " after they were all-reduced");
    else if (unit.offloaded)
      complain("it adds to the gradients of unit " + quoted(layout.name) +
               " after they were copied to the host");
    else if (instruction.accumulate && !unit.reduced)
      complain("it accumulates into " +
               bufferName(instruction.unit, Role::ShardGradient) +
               ", which holds nothing yet");
    else if (!instruction.accumulate && unit.reduced)
      complain("it overwrites " +
               bufferName(instruction.unit, Role::ShardGradient) +
               ", which holds an earlier reduction");
    unit.reduced = true;
    clearWritten(instruction.unit);
    break;
  }
  default: // AllReduce
    if (writesShardGradient(plan, layout))
      allWritten(instruction.unit, "it reduces");
    else if (!unit.reduced)
      complain("it all-reduces " +
               bufferName(instruction.unit, Role::ShardGradient) +
               ", which holds no gradients yet");
    if (unit.allReduced)
      complain("it all-reduces the gradients of unit " + quoted(layout.name) +
               " twice");
    usable(instruction.unit, Role::ShardGradient, instruction.stream,
           "it reduces");
    unit.allReduced = true;
    flight.roles = {Role::ShardGradient};
    if (!layout.hook.empty()) {
      usable(instruction.unit, Role::Receive, instruction.stream,
             "it reduces in");
      flight.roles.push_back(Role::Receive);
    }
    break;
  }
  fly(flight, instruction);
}

void ProgramVerifier::fly(const Flight &flight,
                          const ProgramInstruction &instruction) {
  for (Role role : flight.roles)
    state.units[flight.unit][role].inFlight = true;
  if (instruction.timepoint < 0)
    complain("it starts a collective without a timepoint");
  else if (!flights.emplace(instruction.timepoint, flight).second)
    complain("timepoint " + std::to_string(instruction.timepoint) +
             " is started twice");
}

void ProgramVerifier::await(const ProgramInstruction &instruction) {
  auto found = flights.find(instruction.timepoint);
  if (found == flights.end()) {
    complain("it awaits timepoint " + std::to_string(instruction.timepoint) +
             ", which nothing started");
    return;
  }
  Flight &flight = found->second;
  if (flight.awaited)
    complain("timepoint " + std::to_string(instruction.timepoint) +
             " is awaited twice");
  flight.awaited = true;
  sent.erase(instruction.timepoint);
  fetched.erase(instruction.timepoint);
  for (Role role : flight.roles) {
    state.units[flight.unit][role].inFlight = false;
    state.units[flight.unit][role].seenBy = instruction.stream;
  }
}

void ProgramVerifier::checkType(const std::string &what, DType dtype,
                                const std::vector<int64_t> &shape,
                                DType expectedType,
                                const std::vector<int64_t> &expectedShape) {
  auto text = [](DType type, const std::vector<int64_t> &sizes) {
    std::string result = std::string(toString(type)) + "[";
    for (size_t i = 0; i < sizes.size(); ++i)
      result += (i ? ", " : "") + std::to_string(sizes[i]);
    return result + "]";
  };
  if (dtype != expectedType || shape != expectedShape)
    complain(what + " is " + text(dtype, shape) + ", the function has " +
             text(expectedType, expectedShape));
}

void ProgramVerifier::call(const ProgramInstruction &instruction) {
  const Function &function = plan.functions[instruction.function];
  auto count = [&](const char *what, size_t given, size_t expected) {
    if (given == expected)
      return true;
    complain(function.name + " takes " + std::to_string(expected) + " " + what +
             ", not " + std::to_string(given));
    return false;
  };
  if (!count("inputs", instruction.inputs.size(), function.inputs.size()) ||
      !count("marks of consumed inputs", instruction.consumed.size(),
             instruction.inputs.size()) ||
      !count("parameters", instruction.params.size(), function.params.size()) ||
      !count("gradients", instruction.gradients.size(),
             function.gradients.size()) ||
      !count("outputs", instruction.outputs.size(), function.outputs.size()))
    return;
  for (size_t i = 0; i < instruction.inputs.size(); ++i) {
    const Value &value = program.values[instruction.inputs[i]];
    const Slot &slot = function.slots[function.inputs[i]];
    useValue(instruction.inputs[i], "it reads");
    checkType(valueName(instruction.inputs[i]), value.dtype, value.shape,
              slot.dtype, slot.shape);
    for (size_t j = 0; j < i; ++j)
      if (instruction.inputs[i] == instruction.inputs[j] &&
          instruction.consumed[i] != instruction.consumed[j])
        complain(valueName(instruction.inputs[i]) +
                 " is passed twice, but given up only once");
  }
  draw(instruction, function);
  for (size_t i = 0; i < instruction.params.size(); ++i) {
    const ParamRef &ref = instruction.params[i];
    const Parameter &parameter = plan.parameters[ref.parameter];
    const Unit &unit = plan.units[ref.unit];
    const Slot &slot = function.slots[function.params[i]];
    if (parameter.unit != ownerOf(plan, ref.unit))
      complain(quoted(parameter.fqn) + " is not in unit " + quoted(unit.name));
    checkType(quoted(parameter.fqn), unit.gather, ownShape(plan, parameter),
              slot.dtype, slot.shape);
    if (readsShard(plan, unit) ||
        !usable(ref.unit, Role::Gathered, instruction.stream, "it reads"))
      continue;
    if (!state.units[ref.unit].gathered)
      complain("it reads " + bufferName(ref.unit, Role::Gathered) +
               ", which nothing was gathered into");
    else if (state.units[ref.unit].stale)
      complain("it reads " + bufferName(ref.unit, Role::Gathered) +
               ", which holds the parameters of before the update");
  }
  for (size_t i = 0; i < instruction.gradients.size(); ++i) {
    const GradRef &ref = instruction.gradients[i];
    const Parameter &parameter = plan.parameters[ref.parameter];
    const Unit &unit = plan.units[ref.unit];
    const Slot &slot = function.slots[function.gradients[i]];
    if (parameter.unit != ownerOf(plan, ref.unit))
      complain(quoted(parameter.fqn) + " is not in unit " + quoted(unit.name));
    checkType("the gradient of " + quoted(parameter.fqn), unit.reduce,
              ownShape(plan, parameter), slot.dtype, slot.shape);
    if (!parameter.trainable)
      complain("it writes the gradient of the frozen " + quoted(parameter.fqn));
    const bool direct = writesShardGradient(plan, unit);
    usable(ref.unit, direct ? Role::ShardGradient : Role::Gradient,
           instruction.stream, "it writes");
    if (direct && state.units[ref.unit].allReduced)
      complain("it writes the gradient of " + quoted(parameter.fqn) +
               " after it was all-reduced");
    if (ref.accumulate && !state.written[ref.parameter])
      complain("it accumulates into the gradient of " + quoted(parameter.fqn) +
               ", which holds nothing yet");
    if (!ref.accumulate && state.written[ref.parameter])
      complain("it overwrites the gradient of " + quoted(parameter.fqn));
    state.written[ref.parameter] = true;
  }
  for (size_t i = 0; i < instruction.inputs.size(); ++i)
    if (instruction.consumed[i])
      giveUp(instruction.inputs[i]);
  outputs(instruction, function);
}

/// A function draws in training alone, and two calls never the same numbers
/// but for a backward, which repeats its forward's.
void ProgramVerifier::draw(const ProgramInstruction &instruction,
                           const Function &function) {
  if (function.draws() != (instruction.draw >= 0))
    return void(complain(instruction.draw < 0
                             ? "its function draws random numbers, and "
                               "nothing says by which draw"
                             : "it has a draw, but its function draws "
                               "no random numbers"));
  if (instruction.draw < 0)
    return;
  if (plan.eval >= 0 && &plan.programs[plan.eval] == &program)
    complain("evaluation draws random numbers");
  auto [at, isNew] =
      draws.emplace(instruction.draw, std::pair(instruction.where, 0));
  if (at->second.first != instruction.where)
    complain("its draw " + std::to_string(instruction.draw) + " is that of " +
             accel::plan::quoted(at->second.first));
  else if (++at->second.second > 2)
    complain("a forward and its backward had the draw " +
             std::to_string(instruction.draw) + " before it");
  drawByRank(instruction, function);
}

/// Ranks draw each for itself along axes of the mesh, and a backward along
/// those of its forward, whose numbers it repeats.
void ProgramVerifier::drawByRank(const ProgramInstruction &instruction,
                                 const Function &function) {
  for (const Instruction &op : function.instructions)
    for (const Arg &arg : op.args) {
      if (arg.kind != Arg::Kind::Key)
        continue;
      for (const std::string &axis : arg.axes)
        if (plan.axisSize(axis) <= 1)
          complain(op.op + " draws by the rank's place along " +
                   accel::plan::quoted(axis) +
                   ", which is no axis of the mesh");
      const auto [at, isNew] = drawAxes.emplace(
          std::pair(static_cast<int>(instruction.draw), arg.intValue),
          arg.axes);
      if (at->second != arg.axes)
        complain(op.op +
                 " draws along other axes of the mesh than the call "
                 "before it with key " +
                 std::to_string(arg.intValue) + " of draw " +
                 std::to_string(instruction.draw));
    }
}

/// Values must share storage exactly as the function's output slots do.
void ProgramVerifier::outputs(const ProgramInstruction &instruction,
                              const Function &function) {
  std::map<int, int> owners; // storage slot -> value
  for (size_t i = 0; i < instruction.outputs.size(); ++i) {
    if (instruction.outputs[i] < 0)
      continue;
    const int index = instruction.outputs[i];
    const Value &value = program.values[index];
    const Slot &slot = function.slots[function.outputs[i]];
    checkType(valueName(index), value.dtype, value.shape, slot.dtype,
              slot.shape);
    if (defined[index])
      complain(valueName(index) + " is made twice");
    defined[index] = live[index] = true;

    auto input =
        std::find(function.inputs.begin(), function.inputs.end(), slot.base);
    if (input != function.inputs.end()) {
      int root = rootOf(instruction.inputs[input - function.inputs.begin()]);
      if (value.alias != root)
        complain(valueName(index) + " is a view of " + valueName(root) +
                 " but not its alias");
      continue;
    }
    auto [owner, first] = owners.emplace(slot.base, index);
    if (first && value.alias >= 0)
      complain(valueName(index) + " has a storage of its own but is an alias");
    else if (first && value.bytes != function.slotBytes(slot.base))
      complain(valueName(index) + " has " + std::to_string(value.bytes) +
               " bytes, the function makes " +
               std::to_string(function.slotBytes(slot.base)));
    else if (!first && value.alias != owner->second)
      complain(valueName(index) + " shares the storage of " +
               valueName(owner->second) + " but is not its alias");
  }
}

bool ProgramVerifier::gradientsReady(int index, Stream stream,
                                     const char *verb) {
  const Unit &unit = plan.units[index];
  if (!usable(index, Role::ShardGradient, stream, verb))
    return false;
  if (writesShardGradient(plan, unit)) {
    if (!allWritten(index, verb))
      return false;
  } else if (!state.units[index].reduced) {
    complain(std::string(verb) + " " + bufferName(index, Role::ShardGradient) +
             ", which holds no gradients yet");
    return false;
  }
  if (plan.groupSize(unit.replicateAxes) > 1 &&
      !state.units[index].allReduced) {
    complain(std::string(verb) + " the gradients of unit " + quoted(unit.name) +
             " before they are all-reduced over its replicas");
    return false;
  }
  return true;
}

void ProgramVerifier::gradNorm(const ProgramInstruction &instruction) {
  if (state.normKnown)
    complain("the gradient norm is computed twice in one step");
  const char *verb = "it takes the norm of";
  for (size_t i = 0; i < plan.units.size(); ++i)
    if (plan.units[i].trainable && plan.units[i].stage == program.stage) {
      if (plan.offload.states)
        gradientsOnHost(i, instruction.stream, verb);
      else
        gradientsReady(i, instruction.stream, verb);
    }
  state.normKnown = true;
}

void ProgramVerifier::optimizer(const ProgramInstruction &instruction) {
  UnitState &unit = state.units[instruction.unit];
  const std::string name = quoted(plan.units[instruction.unit].name);
  if (!plan.units[instruction.unit].trainable) {
    complain("it updates the frozen unit " + name);
    return;
  }
  if (unit.updated)
    complain("unit " + name + " is updated twice in one step");
  if (!state.normKnown && plan.job.needsGradNorm())
    complain("unit " + name + " is updated before the gradient norm is known");
  if (plan.offload.states)
    gradientsOnHost(instruction.unit, instruction.stream, "it updates from");
  else
    gradientsReady(instruction.unit, instruction.stream, "it updates from");
  unit.updated = true;
  unit.stale = unit.gathered;
}

void ProgramVerifier::instruction(const ProgramInstruction &instruction,
                                  int index) {
  place = "program " + quoted(program.name) + ", instruction " +
          std::to_string(index) + " (" + toString(instruction.kind) +
          (instruction.kind == ProgramInstructionKind::Call
               ? " " + plan.functions[instruction.function].name
               : std::string()) +
          ")";
  checkStages(instruction);
  switch (instruction.kind) {
  case ProgramInstructionKind::Alloc:
    return alloc(instruction);
  case ProgramInstructionKind::Free:
    return free(instruction);
  case ProgramInstructionKind::AllGather:
  case ProgramInstructionKind::ReduceScatter:
  case ProgramInstructionKind::AllReduce:
    return start(instruction, index);
  case ProgramInstructionKind::Await:
    return await(instruction);
  case ProgramInstructionKind::Call:
    return call(instruction);
  case ProgramInstructionKind::GradNorm:
    return gradNorm(instruction);
  case ProgramInstructionKind::Optimizer:
    return optimizer(instruction);
  case ProgramInstructionKind::Send:
    return send(instruction, index);
  case ProgramInstructionKind::Receive:
    return receive(instruction);
  case ProgramInstructionKind::Offload:
    return offload(instruction, index);
  case ProgramInstructionKind::Fetch:
    return fetch(instruction, index);
  case ProgramInstructionKind::Pause:
    return;
  }
}

void ProgramVerifier::finish() {
  place = "program " + quoted(program.name);
  for (const auto &[timepoint, flight] : flights)
    if (!flight.awaited)
      complain("timepoint " + std::to_string(timepoint) +
               ", started by instruction " +
               std::to_string(flight.instruction) + ", is never awaited");
  std::vector<bool> stays(live.size());
  for (int value : program.inputs)
    stays[value] = true;
  if (program.loss >= 0) {
    stays[program.loss] = true;
    const Value &loss = program.values[program.loss];
    if (!live[program.loss])
      complain("the loss does not exist at the end");
    if (!loss.shape.empty() || loss.dtype != DType::F32)
      complain("the loss is not a 0-d f32");
  }
  if (program.predictions >= 0) {
    stays[program.predictions] = true;
    const Value &predictions = program.values[program.predictions];
    if (!live[program.predictions])
      complain("the predictions do not exist at the end");
    if (predictions.shape.size() != 1 || predictions.dtype != DType::I64)
      complain("the predictions are not a 1-d i64");
  }
  for (size_t value = 0; value < live.size(); ++value)
    if (live[value] && !stays[value])
      complain(valueName(value) + " is never freed");
}

/// The run holds it, whatever programs do.
void ProgramVerifier::checkBuffer(const Value &input) {
  const auto buffer =
      std::find_if(plan.buffers.begin(), plan.buffers.end(),
                   [&](const Buffer &b) { return b.fqn == input.name; });
  if (buffer->shape != input.shape || buffer->dtype != input.dtype)
    complain("input " + quoted(input.name) +
             " is of another shape or dtype than the buffer of its name");
  if (input.alias >= 0 || input.bytes != 0)
    complain("input " + quoted(input.name) + " has " +
             std::to_string(input.bytes) +
             " bytes of its own, expected 0: a buffer lives as long as the "
             "run, not as long as a program; plan the job anew");
}

void ProgramVerifier::begin() {
  place = "program " + quoted(program.name);
  for (int value : program.inputs) {
    if (defined[value])
      complain("input " + quoted(program.values[value].name) +
               " is listed twice");
    const Value &input = program.values[value];
    if (isBuffer(plan, input.name)) {
      checkBuffer(input);
    } else if (input.alias >= 0 || input.bytes != defaultBytes(input)) {
      complain("input " + quoted(input.name) + " has no storage of its own");
    }
    live[value] = defined[value] = true;
  }
}

void ProgramVerifier::run(size_t from, size_t to) {
  for (size_t i = from; i < to; ++i)
    instruction(program.instructions[i], i);
}

} // namespace accel::plan
