//===- ImportProgram.cpp - A plan's program as IR -------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "test/unit/ImportProgram.h"

#include "dialects/Schedule/Convert.h"
#include "runtime/plan/Timeline.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace accel::schedule {

namespace {

using plan::ProgramInstructionKind;
using UnitRole = std::pair<int, plan::Role>;

Role toRole(plan::Role role) { return static_cast<Role>(role); }
Stream toStream(plan::Stream stream) { return static_cast<Stream>(stream); }

class Importer {
public:
  Importer(ModuleOp module, const plan::Plan &plan,
           const plan::Program &program)
      : plan(plan), program(program),
        builder(OpBuilder::atBlockEnd(module.getBody())), module(module),
        values(program.values.size()),
        timeline(plan::simulate(plan, program, plan::persistentBytes(plan))) {}

  ProgramOp run();

private:
  enum class State { Live, InFlight, Freed };
  struct Buffer {
    Value value;
    State state = State::Live;
  };
  struct Flight {
    Value inflight;
    std::vector<UnitRole> buffers;
  };

  InFlightDiagnostic error() {
    return emitError(loc) << "program '" << program.name << "', instruction "
                          << index << " (" << plan::toString(instruction().kind)
                          << "): ";
  }
  const plan::ProgramInstruction &instruction() const {
    return program.instructions[index];
  }
  StreamAttr stream() {
    return StreamAttr::get(builder.getContext(),
                           toStream(instruction().stream));
  }
  StringAttr unitName(int unit) {
    return builder.getStringAttr(plan.units[unit].name);
  }
  BufferType bufferType(UnitRole at) {
    return BufferType::get(
        builder.getContext(),
        plan::roleBytes(plan, plan.units[at.first], at.second), Type());
  }
  BufferType valueType(int value) {
    const plan::Value &v = program.values[value];
    return BufferType::get(builder.getContext(), v.bytes,
                           tensorType(builder.getContext(), v.dtype, v.shape));
  }
  int rootOf(int value) const {
    int alias = program.values[value].alias;
    return alias < 0 ? value : alias;
  }

  /// The current SSA value of a unit's buffer; null after an error.
  Value use(UnitRole at);
  Value useValue(int value);
  void start(Value inflight, std::vector<UnitRole> buffers);
  InflightType inflightType(ArrayRef<UnitRole> buffers);

  LogicalResult convert();
  LogicalResult alloc();
  LogicalResult free();
  LogicalResult collective();
  LogicalResult await();
  LogicalResult call();
  LogicalResult gradNorm();
  LogicalResult optimizer();
  LogicalResult finish();

  const plan::Plan &plan;
  const plan::Program &program;
  OpBuilder builder;
  ModuleOp module;
  Block *body = nullptr;
  Location loc = builder.getUnknownLoc();
  size_t index = 0;
  std::vector<Value> values;
  std::map<UnitRole, Buffer> buffers;
  std::map<int, Flight> flights; // by timepoint
  SmallVector<Attribute> carried;
  plan::ProgramTimeline timeline;
};

Value Importer::use(UnitRole at) {
  auto found = buffers.find(at);
  if (found == buffers.end()) {
    // An earlier program of the instruction left it.
    carried.push_back(CarriedAttr::get(
        builder.getContext(), plan.units[at.first].name, toRole(at.second)));
    Value argument = body->addArgument(bufferType(at), loc);
    buffers[at] = {argument, State::Live};
    return argument;
  }
  if (found->second.state == State::Live)
    return found->second.value;
  error() << "the " << plan::toString(at.second) << " buffer of unit '"
          << plan.units[at.first].name << "' is "
          << (found->second.state == State::InFlight ? "in flight" : "freed");
  return {};
}

Value Importer::useValue(int value) {
  if (!values[value])
    error() << "value '" << program.values[value].name
            << "' is used before it is made";
  return values[value];
}

InflightType Importer::inflightType(ArrayRef<UnitRole> roles) {
  SmallVector<int64_t> bytes;
  for (UnitRole at : roles)
    bytes.push_back(bufferType(at).getBytes());
  return InflightType::get(builder.getContext(), bytes);
}

void Importer::start(Value inflight, std::vector<UnitRole> roles) {
  for (UnitRole at : roles)
    buffers[at].state = State::InFlight;
  flights[instruction().timepoint] = {inflight, std::move(roles)};
}

LogicalResult Importer::alloc() {
  UnitRole at = {instruction().unit, instruction().role};
  auto found = buffers.find(at);
  if (found != buffers.end() && found->second.state != State::Freed)
    return error() << "the buffer is allocated already";
  auto op =
      AllocOp::create(builder, loc, bufferType(at),
                      RoleAttr::get(builder.getContext(), toRole(at.second)),
                      unitName(at.first), stream());
  buffers[at] = {op.getBuffer(), State::Live};
  return success();
}

LogicalResult Importer::free() {
  SmallVector<Value> freed;
  if (instruction().unit >= 0) {
    if (!instruction().values.empty())
      return error() << "frees a unit's buffer together with values";
    UnitRole at = {instruction().unit, instruction().role};
    freed.push_back(use(at));
    buffers[at].state = State::Freed;
  }
  for (int value : instruction().values)
    freed.push_back(useValue(value));
  if (llvm::is_contained(freed, Value()))
    return failure();
  FreeOp::create(builder, loc, freed, stream());
  return success();
}

LogicalResult Importer::collective() {
  const int unit = instruction().unit;
  ArrayAttr axes = builder.getStrArrayAttr(SmallVector<StringRef>(
      instruction().axes.begin(), instruction().axes.end()));
  std::vector<UnitRole> roles;
  switch (instruction().kind) {
  case ProgramInstructionKind::AllGather:
    roles = {{unit, plan::Role::Gathered}};
    break;
  case ProgramInstructionKind::AllReduce:
    roles = {{unit, plan::Role::ShardGradient}};
    break;
  default:
    roles = {{unit, plan::Role::Gradient}, {unit, plan::Role::ShardGradient}};
    if (instruction().algorithm == "all_to_all" &&
        plan.shardRanks(plan.units[unit]) > 1)
      roles.push_back({unit, plan::Role::Receive});
  }
  SmallVector<Value> used;
  for (UnitRole at : roles) {
    used.push_back(use(at));
    if (!used.back())
      return failure();
  }
  InflightType type = inflightType(roles);
  Value inflight;
  if (instruction().kind == ProgramInstructionKind::AllGather)
    inflight = AllGatherStartOp::create(builder, loc, type, unitName(unit),
                                        used[0], axes, stream());
  else if (instruction().kind == ProgramInstructionKind::AllReduce)
    inflight = AllReduceStartOp::create(
        builder, loc, type, unitName(unit), used[0],
        used.size() > 1 ? used[1] : Value(), axes, stream());
  else
    inflight = ReduceScatterStartOp::create(
        builder, loc, type, unitName(unit), used[0], used[1],
        used.size() > 2 ? used[2] : Value(),
        instruction().accumulate ? builder.getUnitAttr() : UnitAttr(), axes,
        builder.getStringAttr(instruction().algorithm), stream());
  start(inflight, std::move(roles));
  return success();
}

LogicalResult Importer::await() {
  auto found = flights.find(instruction().timepoint);
  if (found == flights.end())
    return error() << "awaits timepoint " << instruction().timepoint
                   << ", which nothing started or which is awaited already";
  Flight flight = std::move(found->second);
  flights.erase(found);
  SmallVector<Type> types;
  for (UnitRole at : flight.buffers)
    types.push_back(bufferType(at));
  auto op = AwaitOp::create(builder, loc, types, flight.inflight, stream());
  for (auto [at, value] : llvm::zip(flight.buffers, op.getBuffers()))
    buffers[at] = {value, State::Live};
  return success();
}

LogicalResult Importer::call() {
  const plan::ProgramInstruction &s = instruction();
  MLIRContext *context = builder.getContext();
  SmallVector<Value> inputs, reads, writes;
  for (int value : s.inputs)
    if (inputs.push_back(useValue(value)); !inputs.back())
      return failure();
  llvm::SetVector<UnitRole> read, written;
  SmallVector<Attribute> params, gradients;
  for (const plan::ParamRef &ref : s.params) {
    const plan::Unit &unit = plan.units[ref.unit];
    params.push_back(
        ParamAttr::get(context, unit.name, plan.parameters[ref.parameter].fqn));
    if (!plan::readsShard(plan, unit))
      read.insert({ref.unit, plan::Role::Gathered});
  }
  for (const plan::GradRef &ref : s.gradients) {
    const plan::Unit &unit = plan.units[ref.unit];
    gradients.push_back(GradientAttr::get(context, unit.name,
                                          plan.parameters[ref.parameter].fqn,
                                          ref.accumulate));
    written.insert({ref.unit, plan::writesShardGradient(plan, unit)
                                  ? plan::Role::ShardGradient
                                  : plan::Role::Gradient});
  }
  for (UnitRole at : read)
    if (reads.push_back(use(at)); !reads.back())
      return failure();
  for (UnitRole at : written)
    if (writes.push_back(use(at)); !writes.back())
      return failure();
  SmallVector<int64_t> consumes, drops, aliases;
  for (size_t i = 0; i < s.consumed.size(); ++i)
    if (s.consumed[i])
      consumes.push_back(i);
  SmallVector<Type> types;
  SmallVector<int> kept;
  for (auto [i, value] : llvm::enumerate(s.outputs)) {
    if (value < 0) {
      drops.push_back(i);
      continue;
    }
    types.push_back(valueType(value));
    kept.push_back(value);
  }
  SmallVector<StringRef> names;
  bool shares = false;
  for (int value : kept) {
    names.push_back(program.values[value].name);
    int64_t alias = -1;
    if (int root = program.values[value].alias; root >= 0) {
      shares = true;
      for (size_t i = 0; i < s.inputs.size() && alias < 0; ++i)
        if (rootOf(s.inputs[i]) == root)
          alias = i;
      if (auto *at = llvm::find(kept, root); alias < 0 && at != kept.end())
        alias = s.inputs.size() + (at - kept.begin());
      if (alias < 0)
        return error() << "value '" << program.values[value].name
                       << "' shares the storage of '"
                       << program.values[root].name
                       << "', which the call does not see";
    }
    aliases.push_back(alias);
  }
  if (!shares)
    aliases.clear();
  const int64_t before = index == 0
                             ? timeline.instructions[index].peakBytes
                             : timeline.instructions[index - 1].liveBytes;
  const plan::InstructionMemory &memory = timeline.instructions[index];
  // At the first instruction nothing tells what was live before but the start.
  int64_t entry = before;
  if (index == 0) {
    entry = plan::persistentBytes(plan);
    for (int value : program.inputs)
      entry += program.values[value].bytes;
  }
  auto op = CallOp::create(
      builder, loc, types,
      FlatSymbolRefAttr::get(context, plan.functions[s.function].name), inputs,
      reads, writes, builder.getDenseI64ArrayAttr(consumes),
      builder.getArrayAttr(params), builder.getArrayAttr(gradients),
      builder.getStrArrayAttr(names), builder.getDenseI64ArrayAttr(aliases),
      builder.getDenseI64ArrayAttr(drops),
      builder.getI64IntegerAttr(memory.peakBytes - entry),
      builder.getI64IntegerAttr(memory.peakTotalBytes - entry), stream(),
      s.draw < 0 ? IntegerAttr() : builder.getI64IntegerAttr(s.draw));
  for (auto [value, result] : llvm::zip(kept, op.getOutputs()))
    values[value] = result;
  return success();
}

LogicalResult Importer::gradNorm() {
  SmallVector<Value> shards;
  for (size_t unit = 0; unit < plan.units.size(); ++unit)
    if (plan.units[unit].trainable)
      if (shards.push_back(
              use({static_cast<int>(unit), plan::Role::ShardGradient}));
          !shards.back())
        return failure();
  GradNormOp::create(builder, loc, shards, stream());
  return success();
}

LogicalResult Importer::optimizer() {
  Value shard = use({instruction().unit, plan::Role::ShardGradient});
  if (!shard)
    return failure();
  OptimizerStepOp::create(builder, loc, unitName(instruction().unit), shard,
                          stream());
  return success();
}

LogicalResult Importer::convert() {
  switch (instruction().kind) {
  case ProgramInstructionKind::Alloc:
    return alloc();
  case ProgramInstructionKind::Free:
    return free();
  case ProgramInstructionKind::AllGather:
  case ProgramInstructionKind::ReduceScatter:
  case ProgramInstructionKind::AllReduce:
    return collective();
  case ProgramInstructionKind::Await:
    return await();
  case ProgramInstructionKind::Call:
    return call();
  case ProgramInstructionKind::GradNorm:
    return gradNorm();
  case ProgramInstructionKind::Optimizer:
    return optimizer();
  case ProgramInstructionKind::Send:
  case ProgramInstructionKind::Receive:
  case ProgramInstructionKind::Pause:
    return module.emitError("programs of a pipeline are not imported");
  case ProgramInstructionKind::Offload:
  case ProgramInstructionKind::Fetch:
    return module.emitError("programs that offload are not imported");
  }
  llvm_unreachable("all kinds are handled");
}

LogicalResult Importer::finish() {
  loc = builder.getUnknownLoc();
  SmallVector<Value> kept;
  for (const auto &[at, buffer] : buffers)
    if (buffer.state == State::Live)
      kept.push_back(buffer.value);
  Value loss;
  if (program.loss >= 0 && !(loss = values[program.loss]))
    return emitError(loc) << "program '" << program.name
                          << "': the loss is never made";
  Value predictions;
  if (program.predictions >= 0 && !(predictions = values[program.predictions]))
    return emitError(loc) << "program '" << program.name
                          << "': the predictions are never made";
  ReturnOp::create(builder, loc, loss, predictions, kept);
  return success();
}

ProgramOp Importer::run() {
  SmallVector<StringRef> inputs;
  for (int value : program.inputs)
    inputs.push_back(program.values[value].name);
  auto op = ProgramOp::create(
      builder, loc, builder.getStringAttr(program.name),
      builder.getStrArrayAttr(inputs), builder.getArrayAttr({}),
      builder.getI64IntegerAttr(plan::persistentBytes(plan)),
      builder.getI64IntegerAttr(
          std::max(program.peakBytes, plan::persistentBytes(plan))),
      builder.getI64IntegerAttr(program.peakInstruction));
  body = builder.createBlock(&op.getBody());
  for (int value : program.inputs)
    values[value] = body->addArgument(
        valueType(value),
        NameLoc::get(builder.getStringAttr(program.values[value].name)));
  for (index = 0; index < program.instructions.size(); ++index) {
    const std::string &where = instruction().where;
    loc = where.empty() ? Location(builder.getUnknownLoc())
                        : Location(NameLoc::get(builder.getStringAttr(where)));
    if (failed(convert())) {
      op.erase();
      return {};
    }
  }
  if (failed(finish())) {
    op.erase();
    return {};
  }
  op.setCarriedAttr(builder.getArrayAttr(carried));
  return op;
}

} // namespace

plan::Program canonical(const plan::Program &program) {
  plan::Program result = program;
  result.values.clear();
  std::vector<int> number(program.values.size(), -1);
  auto define = [&](int value) {
    if (value < 0 || number[value] >= 0)
      return;
    number[value] = result.values.size();
    result.values.push_back(program.values[value]);
  };
  auto renumber = [&](int &value) {
    if (value >= 0)
      value = number[value];
  };
  for (int value : program.inputs)
    define(value);
  for (const plan::ProgramInstruction &instruction : program.instructions)
    for (int value : instruction.outputs)
      define(value);
  for (plan::Value &value : result.values)
    renumber(value.alias);
  for (int &value : result.inputs)
    renumber(value);
  renumber(result.loss);
  std::map<int, const plan::ProgramInstruction *> starts; // by old timepoint
  std::map<int, int> timepoints;
  for (plan::ProgramInstruction &instruction : result.instructions) {
    for (std::vector<int> *list :
         {&instruction.inputs, &instruction.outputs, &instruction.values})
      for (int &value : *list)
        renumber(value);
    switch (instruction.kind) {
    case ProgramInstructionKind::AllGather:
    case ProgramInstructionKind::ReduceScatter:
    case ProgramInstructionKind::AllReduce:
      instruction.role = plan::defaultRole(instruction.kind);
      starts[instruction.timepoint] = &instruction;
      timepoints.emplace(instruction.timepoint, timepoints.size());
      instruction.timepoint = timepoints[instruction.timepoint];
      break;
    case ProgramInstructionKind::Await:
      if (auto start = starts.find(instruction.timepoint);
          start != starts.end()) {
        instruction.unit = start->second->unit;
        instruction.role = start->second->role;
        instruction.timepoint = timepoints[instruction.timepoint];
      }
      break;
    case ProgramInstructionKind::GradNorm:
    case ProgramInstructionKind::Optimizer:
      instruction.role = plan::defaultRole(instruction.kind);
      break;
    default:
      break;
    }
  }
  return result;
}

ProgramOp importProgram(ModuleOp module, const plan::Plan &plan,
                        const plan::Program &program) {
  return Importer(module, plan, program).run();
}

} // namespace accel::schedule
