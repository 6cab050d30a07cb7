//===- WritePrograms.cpp - From segment calls to programs -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Schedule/WritePrograms.h"

#include "dialects/Schedule/Convert.h"
#include "runtime/plan/Timeline.h"

#include "llvm/ADT/SetVector.h"

#include <set>

using namespace mlir;

namespace accel::schedule {
namespace {

using UnitRole = std::pair<int, plan::Role>;

std::vector<int> unitsOf(const std::vector<plan::ParamRef> &params) {
  std::set<int> units;
  for (const plan::ParamRef &p : params)
    units.insert(p.unit);
  return {units.begin(), units.end()};
}

/// Which part of the optimizer step a program is.
struct Slot {
  bool first = true, last = true, eval = false;
};

class Writer {
public:
  Writer(ModuleOp module, const plan::Plan &layout, const Graph &graph,
         const WriteOptions &options, const CalleeProvider &callee, Slot slot)
      : module(module), layout(layout), graph(graph), options(options),
        callee(callee), slot(slot), uses(usesOf()),
        issuer(uses, options.issue, *this),
        builder(OpBuilder::atBlockEnd(module.getBody())) {}

  LogicalResult write(StringRef name);

  //===--- What StepIssuer calls ------------------------------------------===//

  void startGather(int u, int call) {
    at(call);
    allocate({u, plan::Role::Gathered});
    Value buffer = use({u, plan::Role::Gathered});
    auto start = AllGatherStartOp::create(
        builder, loc, inflight({buffer}), unitName(u), buffer,
        axes(layout.units[u].shardAxes), stream(Stream::Gather));
    fly(start.getInflight(), {{u, plan::Role::Gathered}});
  }
  void awaitGather(int u, int call) {
    at(call);
    await({u, plan::Role::Gathered});
  }
  void freeGathered(int u, int call) {
    at(call);
    free({u, plan::Role::Gathered});
  }
  void allocateGradient(int u, int call) {
    at(call);
    allocate({u, uses.units[u].writesShard ? plan::Role::ShardGradient
                                           : plan::Role::Gradient});
  }
  void allocateReceive(int u, int call) {
    at(call);
    allocate({u, plan::Role::Receive});
  }
  void allocateShardGradient(int u, int call) {
    at(call);
    allocate({u, plan::Role::ShardGradient});
  }
  void startReduce(int u, bool accumulate, int call) {
    at(call);
    const plan::Unit &unit = layout.units[u];
    std::vector<UnitRole> roles = {{u, plan::Role::Gradient},
                                   {u, plan::Role::ShardGradient}};
    if (uses.units[u].receives)
      roles.push_back({u, plan::Role::Receive});
    SmallVector<Value> buffers;
    for (UnitRole role : roles)
      buffers.push_back(use(role));
    auto start = ReduceScatterStartOp::create(
        builder, loc, inflight(buffers), unitName(u), buffers[0], buffers[1],
        buffers.size() > 2 ? buffers[2] : Value(),
        accumulate ? builder.getUnitAttr() : UnitAttr(), axes(unit.shardAxes),
        builder.getStringAttr(unit.shardAxes.empty() ? "direct"
                                                     : options.reduceScatter),
        stream(Stream::Reduce));
    fly(start.getInflight(), std::move(roles));
  }
  void awaitReduce(int u, int call) {
    at(call);
    await({u, plan::Role::Gradient});
    if (uses.units[u].receives)
      free({u, plan::Role::Receive});
    free({u, plan::Role::Gradient});
  }
  void startAllReduce(int u, int call) {
    at(call);
    Value shard = use({u, plan::Role::ShardGradient});
    auto start = AllReduceStartOp::create(
        builder, loc, inflight({shard}), unitName(u), shard,
        axes(layout.units[u].replicateAxes), stream(Stream::Reduce));
    fly(start.getInflight(), {{u, plan::Role::ShardGradient}});
  }
  void awaitAllReduce(int u, int call) {
    at(call);
    await({u, plan::Role::ShardGradient});
  }
  void update(int u, int call) {
    at(call);
    if (call < 0 && !layout.units[u].name.empty())
      loc = NameLoc::get(unitName(u));
    OptimizerStepOp::create(builder, loc, unitName(u),
                            use({u, plan::Role::ShardGradient}),
                            stream(Stream::Compute));
    free({u, plan::Role::ShardGradient});
  }
  void norm() {
    loc = NameLoc::get(builder.getStringAttr("gradient norm"));
    SmallVector<Value> shards;
    for (auto [u, unit] : llvm::enumerate(uses.units))
      if (unit.lastGradient >= 0)
        shards.push_back(use({static_cast<int>(u), plan::Role::ShardGradient}));
    GradNormOp::create(builder, loc, shards, stream(Stream::Compute));
  }

private:
  StepUses usesOf() const;

  /// Where what follows is for.
  void at(int call) {
    loc = builder.getUnknownLoc();
    if (call >= 0 && !graph.calls[call].path.empty())
      loc = NameLoc::get(builder.getStringAttr(graph.calls[call].path));
  }
  StringAttr unitName(int u) {
    return builder.getStringAttr(layout.units[u].name);
  }
  StreamAttr stream(Stream stream) {
    return StreamAttr::get(builder.getContext(), stream);
  }
  ArrayAttr axes(const std::vector<std::string> &names) {
    return builder.getStrArrayAttr(
        SmallVector<StringRef>(names.begin(), names.end()));
  }

  //===--- Buffers of units -----------------------------------------------===//

  BufferType bufferType(UnitRole role) {
    return BufferType::get(
        builder.getContext(),
        plan::roleBytes(layout, layout.units[role.first], role.second), Type());
  }
  /// What an earlier program of the step left is an argument.
  Value use(UnitRole role) {
    Value &buffer = buffers[role];
    if (!buffer) {
      carried.push_back(CarriedAttr::get(builder.getContext(),
                                         layout.units[role.first].name,
                                         static_cast<Role>(role.second)));
      buffer = body->addArgument(bufferType(role), loc);
    }
    return buffer;
  }
  void allocate(UnitRole role) {
    buffers[role] =
        AllocOp::create(
            builder, loc, bufferType(role),
            RoleAttr::get(builder.getContext(), static_cast<Role>(role.second)),
            unitName(role.first), stream(Stream::Compute))
            .getBuffer();
  }
  void free(UnitRole role) {
    FreeOp::create(builder, loc, use(role), stream(Stream::Compute));
    buffers.erase(role);
  }
  InflightType inflight(ArrayRef<Value> values) {
    SmallVector<int64_t> bytes;
    for (Value value : values)
      bytes.push_back(cast<BufferType>(value.getType()).getBytes());
    return InflightType::get(builder.getContext(), bytes);
  }
  void fly(Value inflight, std::vector<UnitRole> roles) {
    UnitRole key = roles.front();
    flights[key] = {inflight, std::move(roles)};
  }
  /// Of the collective that was started with this buffer first.
  void await(UnitRole key) {
    auto [started, roles] = flights[key];
    SmallVector<Type> types;
    for (UnitRole role : roles)
      types.push_back(bufferType(role));
    auto op =
        AwaitOp::create(builder, loc, types, started, stream(Stream::Compute));
    for (auto [role, buffer] : llvm::zip(roles, op.getBuffers()))
      buffers[role] = buffer;
    flights.erase(key);
  }

  //===--- Calls ----------------------------------------------------------===//

  BufferType valueType(plan::DType dtype, ArrayRef<int64_t> shape,
                       std::optional<int64_t> bytes = std::nullopt) {
    if (!bytes) {
      bytes = plan::itemSize(dtype);
      for (int64_t size : shape)
        *bytes *= size;
    }
    return BufferType::get(builder.getContext(), plan::alignedBytes(*bytes),
                           tensorType(builder.getContext(), dtype, shape));
  }
  InFlightDiagnostic error(int call) {
    return module.emitError()
           << "in the call of '" << graph.calls[call].path << "': ";
  }
  LogicalResult checkResults(int call, const Callee &function,
                             size_t expected) {
    if (function.results.size() == expected)
      return success();
    return error(call) << "'" << function.name << "' returns "
                       << function.results.size() << " values, expected "
                       << expected;
  }
  struct Outputs {
    SmallVector<Type> types;
    SmallVector<std::string> names;
    SmallVector<int64_t> aliases;
  };
  Outputs forwardOutputs(int call, const Callee &function, size_t numInputs);
  ResultRange createCall(const Callee &function, int call,
                         ArrayRef<Value> inputs,
                         const std::vector<plan::ParamRef> &params,
                         ArrayRef<plan::GradRef> gradients, Outputs outputs);
  LogicalResult forward(int call);
  LogicalResult backward(int call);
  FailureOr<Value> operand(int call, const BackwardOperand &operand);
  LogicalResult inputGradients(int call, const Callee &function,
                               Outputs &outputs);

  ModuleOp module;
  const plan::Plan &layout;
  const Graph &graph;
  const WriteOptions &options;
  const CalleeProvider &callee;
  const Slot slot;
  StepUses uses;
  StepIssuer<Writer> issuer;
  OpBuilder builder;
  Block *body = nullptr;
  Location loc = builder.getUnknownLoc();
  std::map<UnitRole, Value> buffers; // that are allocated
  std::map<UnitRole, std::pair<Value, std::vector<UnitRole>>> flights;
  SmallVector<Attribute> carried;
  DenseMap<int, Attribute> parameterAttrs;
  std::vector<Value> values, tangents;   // by graph value
  std::vector<SmallVector<Value>> saved; // by call
  std::vector<bool> gradientSeen;        // by parameter
};

StepUses Writer::usesOf() const {
  StepUses result(static_cast<int>(layout.units.size()));
  for (auto [u, unit] : llvm::enumerate(layout.units)) {
    StepUses::Unit &flags = result.units[u];
    flags.gathered = !plan::readsShard(layout, unit);
    flags.reshardAfterForward = slot.eval || options.reshardAfterForward[u];
    flags.writesShard = plan::writesShardGradient(layout, unit);
    flags.receives =
        !unit.shardAxes.empty() && options.reduceScatter == "all_to_all";
    flags.replicated = !unit.replicateAxes.empty();
  }
  const std::vector<int> none;
  for (const SegmentCall &call : graph.calls)
    if (slot.eval)
      result.addCall(unitsOf(call.evalParams), none, none, true, false);
    else
      result.addCall(unitsOf(call.forwardParams), unitsOf(call.backwardParams),
                     unitsOf(call.gradients), !call.forwardFunction.empty(),
                     !call.backwardFunction.empty());
  result.finish();
  return result;
}

ResultRange Writer::createCall(const Callee &function, int call,
                               ArrayRef<Value> inputs,
                               const std::vector<plan::ParamRef> &params,
                               ArrayRef<plan::GradRef> gradients,
                               Outputs outputs) {
  at(call);
  MLIRContext *context = builder.getContext();
  llvm::SetVector<UnitRole> read, written;
  SmallVector<Attribute> paramAttrs, gradientAttrs;
  for (const plan::ParamRef &ref : params) {
    // A parameter is in one unit, and read by several calls.
    Attribute &param = parameterAttrs[ref.parameter];
    if (!param)
      param = ParamAttr::get(context, layout.units[ref.unit].name,
                             layout.parameters[ref.parameter].fqn);
    paramAttrs.push_back(param);
    if (uses.units[ref.unit].gathered)
      read.insert({ref.unit, plan::Role::Gathered});
  }
  for (const plan::GradRef &ref : gradients) {
    gradientAttrs.push_back(GradientAttr::get(
        context, layout.units[ref.unit].name,
        layout.parameters[ref.parameter].fqn, ref.accumulate));
    written.insert({ref.unit, uses.units[ref.unit].writesShard
                                  ? plan::Role::ShardGradient
                                  : plan::Role::Gradient});
  }
  SmallVector<Value> reads, writes;
  for (UnitRole role : read)
    reads.push_back(use(role));
  for (UnitRole role : written)
    writes.push_back(use(role));
  if (llvm::all_of(outputs.aliases, [](int64_t alias) { return alias < 0; }))
    outputs.aliases.clear();
  SmallVector<StringRef> names(outputs.names.begin(), outputs.names.end());
  auto op = CallOp::create(
      builder, loc, outputs.types,
      FlatSymbolRefAttr::get(context, function.name), inputs, reads, writes,
      builder.getDenseI64ArrayAttr({}), builder.getArrayAttr(paramAttrs),
      builder.getArrayAttr(gradientAttrs), builder.getStrArrayAttr(names),
      builder.getDenseI64ArrayAttr(outputs.aliases),
      builder.getDenseI64ArrayAttr({}), builder.getI64IntegerAttr(0),
      builder.getI64IntegerAttr(0), stream(Stream::Compute),
      // A call and its backward draw the same numbers, different calls others.
      function.draws ? builder.getI64IntegerAttr(call) : IntegerAttr());
  return op.getOutputs();
}

/// Outputs of the segment, then saved values; results that share a storage
/// share it as values too.
Writer::Outputs Writer::forwardOutputs(int call, const Callee &function,
                                       size_t numInputs) {
  const SegmentCall &segment = graph.calls[call];
  Outputs outputs;
  for (auto [i, result] : llvm::enumerate(function.results)) {
    const bool shares = result.sharesWith >= 0;
    outputs.names.push_back(i < segment.outputs.size()
                                ? graph.values[segment.outputs[i]].name
                                : segment.path + ":" + std::to_string(i));
    outputs.types.push_back(valueType(result.dtype, result.shape,
                                      shares ? 0 : result.storageBytes));
    outputs.aliases.push_back(
        shares ? static_cast<int64_t>(numInputs) + result.sharesWith : -1);
  }
  return outputs;
}

LogicalResult Writer::forward(int call) {
  const SegmentCall &segment = graph.calls[call];
  FailureOr<Callee> function =
      callee(slot.eval ? segment.evalFunction : segment.forwardFunction, {});
  if (failed(function))
    return failure();
  if (failed(checkResults(call, *function,
                          segment.outputs.size() +
                              (slot.eval ? 0 : segment.numSaved))))
    return failure();
  SmallVector<Value> inputs;
  for (int v : segment.inputs)
    inputs.push_back(values[v]);
  Outputs outputs = forwardOutputs(call, *function, inputs.size());
  ResultRange results = createCall(
      *function, call, inputs,
      slot.eval ? segment.evalParams : segment.forwardParams, {}, outputs);
  for (auto [i, result] : llvm::enumerate(results))
    if (i < segment.outputs.size())
      values[segment.outputs[i]] = result;
    else
      saved[call].push_back(result);
  return success();
}

FailureOr<Value> Writer::operand(int call, const BackwardOperand &operand) {
  const SegmentCall &segment = graph.calls[call];
  using Kind = BackwardOperand::Kind;
  switch (operand.kind) {
  case Kind::Input:
    return values[segment.inputs[operand.index]];
  case Kind::Output:
    return values[segment.outputs[operand.index]];
  case Kind::Saved:
    return saved[call][operand.index];
  case Kind::Tangent:
    if (Value tangent = tangents[segment.outputs[operand.index]])
      return tangent;
    return error(call) << "its backward needs the gradient of output "
                       << operand.index << ", which no later call makes";
  case Kind::Carry:
    if (Value tangent = tangents[segment.inputs[operand.index]])
      return tangent;
    return error(call) << "its backward adds to the gradient of input "
                       << operand.index << ", which no later call makes";
  }
  llvm_unreachable("all kinds are handled");
}

/// Where the backward is the whole segment, its outputs come first.
LogicalResult Writer::inputGradients(int call, const Callee &function,
                                     Outputs &outputs) {
  const SegmentCall &segment = graph.calls[call];
  auto add = [&](std::string name, plan::DType dtype, ArrayRef<int64_t> shape) {
    outputs.names.push_back(std::move(name));
    outputs.types.push_back(valueType(dtype, shape));
    outputs.aliases.push_back(-1);
  };
  const bool whole = segment.forwardFunction.empty();
  if (failed(checkResults(call, function,
                          (whole ? segment.outputs.size() : 0) +
                              segment.inputGradients.size())))
    return failure();
  if (whole)
    for (int v : segment.outputs)
      add(graph.values[v].name, graph.values[v].dtype, graph.values[v].shape);
  for (int input : segment.inputGradients) {
    const int v = segment.inputs[input];
    const bool carries = llvm::any_of(
        segment.backwardOperands, [&](const BackwardOperand &operand) {
          return operand.kind == BackwardOperand::Kind::Carry &&
                 operand.index == input;
        });
    if (tangents[v] && !carries)
      return error(call) << "'" << graph.values[v].name
                         << "' has a gradient already, which its backward "
                            "does not add to";
    const Callee::Result &result = function.results[outputs.names.size()];
    add("grad " + graph.values[v].name, result.dtype, result.shape);
  }
  return success();
}

LogicalResult Writer::backward(int call) {
  const SegmentCall &segment = graph.calls[call];
  std::vector<GradientMode> modes;
  std::vector<plan::GradRef> gradients;
  for (const plan::ParamRef &p : segment.gradients) {
    const bool accumulate =
        gradientSeen[p.parameter] || issuer.accumulates(p.unit);
    gradientSeen[p.parameter] = true;
    const plan::Unit &unit = layout.units[p.unit];
    modes.push_back({accumulate, uses.units[p.unit].writesShard ? unit.storage
                                                                : unit.reduce});
    gradients.push_back({p.unit, p.parameter, accumulate});
  }
  FailureOr<Callee> function = callee(segment.backwardFunction, modes);
  if (failed(function))
    return failure();
  SmallVector<Value> inputs;
  for (const BackwardOperand &each : segment.backwardOperands) {
    FailureOr<Value> value = operand(call, each);
    if (failed(value))
      return failure();
    inputs.push_back(*value);
  }
  Outputs outputs;
  if (failed(inputGradients(call, *function, outputs)))
    return failure();
  ResultRange results = createCall(*function, call, inputs,
                                   segment.backwardParams, gradients, outputs);
  size_t next = 0;
  if (segment.forwardFunction.empty())
    for (int v : segment.outputs)
      values[v] = results[next++];
  for (int input : segment.inputGradients)
    tangents[segment.inputs[input]] = results[next++];
  return success();
}

LogicalResult Writer::write(StringRef name) {
  SmallVector<StringRef> names;
  for (int v : graph.inputs)
    names.push_back(graph.values[v].name);
  if (!slot.eval)
    names.push_back("loss_seed");
  const int64_t persistent = plan::persistentBytes(layout);
  auto program = ProgramOp::create(
      builder, loc, builder.getStringAttr(name), builder.getStrArrayAttr(names),
      builder.getArrayAttr({}), builder.getI64IntegerAttr(persistent),
      builder.getI64IntegerAttr(persistent), builder.getI64IntegerAttr(-1));
  body = builder.createBlock(&program.getBody());
  auto addInput = [&](StringRef input, Type type) {
    return body->addArgument(type, NameLoc::get(builder.getStringAttr(input)));
  };
  values.resize(graph.values.size());
  tangents.resize(graph.values.size());
  saved.resize(graph.calls.size());
  gradientSeen.resize(layout.parameters.size());
  for (int v : graph.inputs)
    values[v] =
        addInput(graph.values[v].name,
                 valueType(graph.values[v].dtype, graph.values[v].shape));
  if (!slot.eval)
    tangents[graph.loss] =
        addInput("loss_seed", valueType(plan::DType::F32, {}));

  issuer.begin(slot.first, slot.last);
  for (int c = 0; c < uses.numCalls(); ++c) {
    if (!uses.hasForward(c))
      continue;
    issuer.beforeForward(c);
    if (failed(forward(c)))
      return failure();
    issuer.afterForward(c);
  }
  if (!slot.eval) {
    issuer.endForward();
    for (int c = uses.numCalls(); c-- > 0;) {
      if (graph.calls[c].backwardFunction.empty())
        continue;
      issuer.beforeBackward(c);
      if (failed(backward(c)))
        return failure();
      issuer.afterBackward(c);
    }
    issuer.endBackward();
    if (slot.last)
      issuer.update();
  }
  if (!values[graph.loss])
    return program.emitOpError("does not compute the loss");
  loc = builder.getUnknownLoc();
  SmallVector<Value> kept;
  for (const auto &[role, buffer] : buffers)
    kept.push_back(buffer);
  ReturnOp::create(builder, loc, values[graph.loss], kept);
  program.setCarriedAttr(builder.getArrayAttr(carried));
  return success();
}

} // namespace

LogicalResult writePrograms(ModuleOp module, const plan::Plan &layout,
                            const Graph &graph, const WriteOptions &options,
                            const CalleeProvider &callee) {
  auto write = [&](StringRef name, Slot slot) {
    return Writer(module, layout, graph, options, callee, slot).write(name);
  };
  if (options.accumulation == 1) {
    if (failed(write("train", {true, true})))
      return failure();
  } else {
    if (failed(write("first", {true, false})))
      return failure();
    if (options.accumulation > 2 && failed(write("middle", {false, false})))
      return failure();
    if (failed(write("last", {false, true})))
      return failure();
  }
  return write("eval", {true, true, /*eval=*/true});
}

} // namespace accel::schedule
