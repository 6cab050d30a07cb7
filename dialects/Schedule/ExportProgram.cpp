//===- ExportProgram.cpp - IR as a plan's program ---------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Schedule/Convert.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace accel::schedule {

RankedTensorType tensorType(MLIRContext *context, plan::DType dtype,
                            ArrayRef<int64_t> shape) {
  Builder b(context);
  Type element;
  switch (dtype) {
  case plan::DType::F64:
    element = b.getF64Type();
    break;
  case plan::DType::F32:
    element = b.getF32Type();
    break;
  case plan::DType::BF16:
    element = b.getBF16Type();
    break;
  case plan::DType::F16:
    element = b.getF16Type();
    break;
  case plan::DType::I64:
    element = b.getI64Type();
    break;
  case plan::DType::I32:
    element = b.getI32Type();
    break;
  case plan::DType::I16:
    element = b.getIntegerType(16);
    break;
  case plan::DType::U8:
    element = b.getIntegerType(8, /*isSigned=*/false);
    break;
  case plan::DType::I1:
    element = b.getI1Type();
    break;
  }
  return RankedTensorType::get(shape, element);
}

std::optional<plan::DType> planDType(Type type) {
  if (type.isF64())
    return plan::DType::F64;
  if (type.isF32())
    return plan::DType::F32;
  if (type.isBF16())
    return plan::DType::BF16;
  if (type.isF16())
    return plan::DType::F16;
  if (type.isUnsignedInteger(8))
    return plan::DType::U8;
  if (!type.isSignlessInteger())
    return std::nullopt;
  switch (type.getIntOrFloatBitWidth()) {
  case 64:
    return plan::DType::I64;
  case 32:
    return plan::DType::I32;
  case 16:
    return plan::DType::I16;
  case 1:
    return plan::DType::I1;
  default:
    return std::nullopt;
  }
}

namespace {

using plan::ProgramInstructionKind;

/// What a unit's buffer is known as.
struct UnitRole {
  int unit = -1;
  plan::Role role = plan::Role::Gathered;
};

class Exporter {
public:
  Exporter(ProgramOp op, const plan::Plan &plan,
           function_ref<int(StringRef)> functionIndex);
  FailureOr<plan::Program> run();

private:
  int unit(Operation *op, StringRef name);
  int parameter(Operation *op, int unit, StringRef fqn);
  int addValue(Value value, StringRef name, int alias);
  plan::ProgramInstruction &add(Operation *op, ProgramInstructionKind kind);
  std::vector<std::string> strings(ArrayAttr list) {
    std::vector<std::string> result;
    for (auto text : list.getAsValueRange<StringAttr>())
      result.push_back(text.str());
    return result;
  }
  void start(Operation *op, ProgramInstructionKind kind, StringRef unitName,
             Value inflight, ArrayRef<plan::Role> roles);
  void convert(Operation *op);
  void call(CallOp op);
  void free(FreeOp op);
  void fetch(FetchStartOp op);

  ProgramOp op;
  const plan::Plan &plan;
  function_ref<int(StringRef)> functionIndex;
  llvm::StringMap<int> units, parameters, functions;
  plan::Program program;
  DenseMap<Value, int> values;
  DenseMap<Value, UnitRole> buffers;
  DenseMap<Value, int> flights; // instruction of the start
  DenseMap<Value, SmallVector<plan::Role>> flightRoles;
  bool failed = false;
};

Exporter::Exporter(ProgramOp op, const plan::Plan &plan,
                   function_ref<int(StringRef)> functionIndex)
    : op(op), plan(plan), functionIndex(functionIndex) {
  for (auto [i, unit] : llvm::enumerate(plan.units))
    units[unit.name] = i;
  for (auto [i, parameter] : llvm::enumerate(plan.parameters))
    parameters[parameter.fqn] = i;
  for (auto [i, function] : llvm::enumerate(plan.functions))
    functions[function.name] = i;
}

int Exporter::unit(Operation *at, StringRef name) {
  auto found = units.find(name);
  if (found != units.end())
    return found->second;
  at->emitOpError("names the unit '") << name << "', which does not exist";
  failed = true;
  return -1;
}

int Exporter::parameter(Operation *at, int unit, StringRef fqn) {
  auto found = parameters.find(fqn);
  if (found != parameters.end() &&
      (unit < 0 ||
       plan.parameters[found->second].unit == plan::ownerOf(plan, unit)))
    return found->second;
  at->emitOpError("names the parameter '")
      << fqn << "', which its unit does not have";
  failed = true;
  return -1;
}

int Exporter::addValue(Value value, StringRef name, int alias) {
  auto type = cast<BufferType>(value.getType());
  auto tensor = cast<RankedTensorType>(type.getTensor());
  plan::Value result;
  result.name = name.str();
  if (std::optional<plan::DType> dtype = planDType(tensor.getElementType())) {
    result.dtype = *dtype;
  } else {
    op.emitOpError("has a value of the unsupported type ") << tensor;
    failed = true;
  }
  result.shape.assign(tensor.getShape().begin(), tensor.getShape().end());
  result.bytes = type.getBytes();
  result.alias = alias;
  program.values.push_back(std::move(result));
  return values[value] = program.values.size() - 1;
}

plan::ProgramInstruction &Exporter::add(Operation *at,
                                        ProgramInstructionKind kind) {
  plan::ProgramInstruction &instruction = program.instructions.emplace_back();
  instruction.kind = kind;
  if (auto named = dyn_cast<NameLoc>(at->getLoc()))
    instruction.where = named.getName().str();
  if (auto stream = at->getAttrOfType<StreamAttr>("stream"))
    instruction.stream = static_cast<plan::Stream>(stream.getValue());
  return instruction;
}

void Exporter::start(Operation *at, ProgramInstructionKind kind,
                     StringRef unitName, Value inflight,
                     ArrayRef<plan::Role> roles) {
  plan::ProgramInstruction &instruction = add(at, kind);
  instruction.unit = unit(at, unitName);
  instruction.role = roles[0];
  if (auto axes = at->getAttrOfType<ArrayAttr>("axes"))
    instruction.axes = strings(axes);
  instruction.timepoint = flights.size();
  flights[inflight] = program.instructions.size() - 1;
  flightRoles[inflight].assign(roles.begin(), roles.end());
}

void Exporter::free(FreeOp op) {
  plan::ProgramInstruction &instruction = add(op, ProgramInstructionKind::Free);
  for (Value value : op.getBuffers()) {
    if (auto found = values.find(value); found != values.end()) {
      instruction.values.push_back(found->second);
    } else {
      UnitRole at = buffers.lookup(value);
      instruction.unit = at.unit;
      instruction.role = at.role;
    }
  }
}

void Exporter::call(CallOp op) {
  plan::ProgramInstruction &instruction = add(op, ProgramInstructionKind::Call);
  if (functionIndex) {
    instruction.function = functionIndex(op.getCallee());
  } else if (auto found = functions.find(op.getCallee());
             found != functions.end()) {
    instruction.function = found->second;
  }
  if (instruction.function < 0) {
    op.emitOpError("calls '")
        << op.getCallee() << "', which is no function of the plan";
    failed = true;
  }
  if (std::optional<uint64_t> draw = op.getDraw())
    instruction.draw = static_cast<int>(*draw);
  for (Value value : op.getInputs())
    instruction.inputs.push_back(values.lookup(value));
  instruction.consumed.resize(instruction.inputs.size());
  for (int64_t position : op.getConsumes())
    instruction.consumed[position] = true;
  for (auto ref : op.getParams().getAsRange<ParamAttr>()) {
    int index = unit(op, ref.getUnit());
    instruction.params.push_back({index, parameter(op, index, ref.getFqn())});
  }
  for (auto ref : op.getGradients().getAsRange<GradientAttr>()) {
    int index = unit(op, ref.getUnit());
    instruction.gradients.push_back(
        {index, parameter(op, index, ref.getFqn()), ref.getAccumulate()});
  }
  // Owners first: a result may share the storage of a later one.
  const size_t first = program.values.size();
  std::vector<int> aliases(op.getOutputs().size(), -1);
  for (auto [i, alias] : llvm::enumerate(op.getAliases())) {
    if (alias < 0)
      continue;
    const int64_t numInputs = instruction.inputs.size();
    if (alias >= numInputs) {
      aliases[i] = first + alias - numInputs;
      continue;
    }
    int root = instruction.inputs[alias];
    aliases[i] =
        program.values[root].alias < 0 ? root : program.values[root].alias;
  }
  std::vector<int> outputs;
  for (auto [value, name, alias] : llvm::zip(
           op.getOutputs(), op.getNames().getAsRange<StringAttr>(), aliases))
    outputs.push_back(addValue(value, name.getValue(), alias));
  const size_t total = outputs.size() + op.getDrops().size();
  size_t next = 0;
  for (size_t i = 0; i < total; ++i)
    instruction.outputs.push_back(
        llvm::is_contained(op.getDrops(), static_cast<int64_t>(i))
            ? -1
            : outputs[next++]);
}

/// The values are there from the start, for whoever awaits it.
void Exporter::fetch(FetchStartOp op) {
  plan::ProgramInstruction &instruction =
      add(op, ProgramInstructionKind::Fetch);
  instruction.timepoint = flights.size();
  flights[op.getInflight()] = program.instructions.size() - 1;
  auto await =
      op.getInflight().use_empty()
          ? AwaitFetchOp()
          : dyn_cast<AwaitFetchOp>(*op.getInflight().getUsers().begin());
  if (!await) {
    op.emitOpError("is never awaited");
    failed = true;
    return;
  }
  DenseMap<int, int> owners; // by what owned the storage that was saved
  for (auto [saved, value] :
       llvm::zip(op.getSave().getValues(), await.getValues())) {
    const int from = values.lookup(saved);
    const int to = static_cast<int>(program.values.size());
    auto [owner, isNew] = owners.try_emplace(rootOf(program, from), to);
    instruction.inputs.push_back(from);
    instruction.outputs.push_back(
        addValue(value, program.values[from].name, isNew ? -1 : owner->second));
  }
}

void Exporter::convert(Operation *at) {
  TypeSwitch<Operation *>(at)
      .Case([&](AllocOp op) {
        plan::ProgramInstruction &instruction =
            add(op, ProgramInstructionKind::Alloc);
        instruction.unit = unit(op, op.getUnit());
        instruction.role = static_cast<plan::Role>(op.getRole());
        buffers[op.getBuffer()] = {instruction.unit, instruction.role};
      })
      .Case([&](FreeOp op) { free(op); })
      .Case([&](AllGatherStartOp op) {
        start(op, ProgramInstructionKind::AllGather, op.getUnit(),
              op.getInflight(), plan::Role::Gathered);
      })
      .Case([&](ReduceScatterStartOp op) {
        start(op, ProgramInstructionKind::ReduceScatter, op.getUnit(),
              op.getInflight(),
              {plan::Role::Gradient, plan::Role::ShardGradient,
               plan::Role::Receive});
        program.instructions.back().algorithm = op.getAlgorithm().str();
        program.instructions.back().accumulate = op.getAccumulate();
      })
      .Case([&](AllReduceStartOp op) {
        start(op, ProgramInstructionKind::AllReduce, op.getUnit(),
              op.getInflight(),
              {plan::Role::ShardGradient, plan::Role::Receive});
      })
      .Case([&](OffloadStartOp op) {
        start(op, ProgramInstructionKind::Offload, op.getUnit(),
              op.getInflight(), plan::Role::ShardGradient);
      })
      .Case([&](AwaitOp op) {
        plan::ProgramInstruction &instruction =
            add(op, ProgramInstructionKind::Await);
        auto found = flights.find(op.getInflight());
        if (found == flights.end()) {
          op.emitOpError("awaits what no operation of this program started");
          failed = true;
          return;
        }
        const plan::ProgramInstruction &start =
            program.instructions[found->second];
        instruction.unit = start.unit;
        instruction.role = start.role;
        instruction.timepoint = start.timepoint;
        for (auto [i, buffer] : llvm::enumerate(op.getBuffers()))
          buffers[buffer] = {instruction.unit,
                             flightRoles[op.getInflight()][i]};
      })
      .Case([&](CallOp op) { call(op); })
      .Case([&](SendStartOp op) {
        plan::ProgramInstruction &instruction =
            add(op, ProgramInstructionKind::Send);
        instruction.inputs = {values.lookup(op.getValue())};
        instruction.shift = static_cast<int>(op.getShift());
        instruction.timepoint = flights.size();
        flights[op.getInflight()] = program.instructions.size() - 1;
      })
      .Case([&](HandOverOp op) {
        plan::ProgramInstruction &instruction =
            add(op, ProgramInstructionKind::Send);
        instruction.inputs = {values.lookup(op.getValue())};
        instruction.shift = static_cast<int>(op.getShift());
      })
      .Case([&](SaveStartOp op) {
        plan::ProgramInstruction &instruction =
            add(op, ProgramInstructionKind::Offload);
        instruction.role = plan::Role::ShardGradient; // the default's
        for (Value value : op.getValues())
          instruction.inputs.push_back(values.lookup(value));
        instruction.timepoint = flights.size();
        flights[op.getInflight()] = program.instructions.size() - 1;
      })
      .Case([&](FetchStartOp op) { fetch(op); })
      .Case<AwaitSendOp, AwaitFetchOp>([&](auto op) {
        auto found = flights.find(op.getInflight());
        plan::ProgramInstruction &instruction =
            add(op, ProgramInstructionKind::Await);
        if (found == flights.end()) {
          op.emitOpError("awaits what no operation of this program started");
          failed = true;
          return;
        }
        instruction.timepoint = program.instructions[found->second].timepoint;
      })
      .Case([&](ReceiveOp op) {
        plan::ProgramInstruction &instruction =
            add(op, ProgramInstructionKind::Receive);
        instruction.shift = static_cast<int>(op.getShift());
        instruction.outputs = {addValue(op.getValue(), op.getName(), -1)};
      })
      .Case([&](PauseOp op) { add(op, ProgramInstructionKind::Pause); })
      .Case([&](GradNormOp op) {
        add(op, ProgramInstructionKind::GradNorm).role =
            plan::Role::ShardGradient;
      })
      .Case([&](OptimizerStepOp op) {
        plan::ProgramInstruction &instruction =
            add(op, ProgramInstructionKind::Optimizer);
        instruction.unit = unit(op, op.getUnit());
        instruction.role = plan::Role::ShardGradient;
      })
      .Case([&](HostStepOp op) {
        plan::ProgramInstruction &instruction =
            add(op, ProgramInstructionKind::Optimizer);
        instruction.unit = unit(op, op.getUnit());
        instruction.role = plan::Role::ShardGradient;
      })
      .Case([&](ReturnOp op) {
        if (op.getLoss())
          program.loss = values.lookup(op.getLoss());
        if (op.getPredictions())
          program.predictions = values.lookup(op.getPredictions());
      })
      .Default([&](Operation *other) {
        other->emitOpError("is no instruction of a program");
        failed = true;
      });
}

FailureOr<plan::Program> Exporter::run() {
  program.name = op.getSymName().str();
  if (auto stage = op->getAttrOfType<IntegerAttr>(stageAttr))
    program.stage = static_cast<int>(stage.getInt());
  if (auto chunk = op->getAttrOfType<IntegerAttr>(chunkAttr))
    program.chunk = static_cast<int>(chunk.getInt());
  program.peakBytes = op.getPeakBytes();
  program.peakInstruction = static_cast<int64_t>(op.getPeakInstruction());
  Block &body = op.getBody().front();
  const size_t numInputs = op.getInputs().size();
  for (BlockArgument argument : body.getArguments()) {
    const size_t i = argument.getArgNumber();
    if (i < numInputs) {
      program.inputs.push_back(addValue(
          argument, cast<StringAttr>(op.getInputs()[i]).getValue(), -1));
      continue;
    }
    auto carried = cast<CarriedAttr>(op.getCarried()[i - numInputs]);
    buffers[argument] = {unit(op, carried.getUnit()),
                         static_cast<plan::Role>(carried.getRole())};
  }
  for (Operation &each : body)
    convert(&each);
  if (failed)
    return failure();
  return std::move(program);
}

} // namespace

FailureOr<plan::Program>
exportProgram(ProgramOp program, const plan::Plan &plan,
              function_ref<int(StringRef)> functionIndex) {
  return Exporter(program, plan, functionIndex).run();
}

} // namespace accel::schedule
