//===- ProgramWriter.h - One program of the step ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_SCHEDULE_PROGRAMWRITER_H
#define ACCEL_PASSES_SCHEDULE_PROGRAMWRITER_H

#include "dialects/Schedule/Convert.h"
#include "passes/Schedule/WritePrograms.h"

#include <map>

namespace accel::schedule {

using UnitRole = std::pair<int, plan::Role>;

/// Which part of the optimizer step a program is, and in which stage.
struct Slot {
  bool first = true, last = true, eval = false;
  int stage = 0, chunk = 0;
};

class ProgramWriter {
public:
  ProgramWriter(mlir::ModuleOp module, const plan::Plan &layout,
                const Graph &graph, const WriteOptions &options,
                const CalleeProvider &callee, Slot slot)
      : module(module), layout(layout), graph(graph), options(options),
        callee(callee), slot(slot), uses(usesOf()),
        issuer(uses, issueOf(options, slot), *this),
        builder(mlir::OpBuilder::atBlockEnd(module.getBody())) {}

  mlir::LogicalResult write(llvm::StringRef name);

  //===--- What StepIssuer calls ------------------------------------------===//

  void startGather(int u, int call) {
    at(call);
    allocate({u, plan::Role::Gathered});
    startRegather(u, call);
  }
  void startRegather(int u, int call) {
    at(call);
    mlir::Value buffer = use({u, plan::Role::Gathered});
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
    llvm::SmallVector<mlir::Value> buffers;
    for (UnitRole role : roles)
      buffers.push_back(use(role));
    auto start = ReduceScatterStartOp::create(
        builder, loc, inflight(buffers), unitName(u), buffers[0], buffers[1],
        buffers.size() > 2 ? buffers[2] : mlir::Value(),
        accumulate ? builder.getUnitAttr() : mlir::UnitAttr(),
        axes(unit.shardAxes),
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
    std::vector<UnitRole> roles = {{u, plan::Role::ShardGradient}};
    if (uses.units[u].casts)
      roles.push_back({u, plan::Role::Receive});
    llvm::SmallVector<mlir::Value> buffers;
    for (UnitRole role : roles)
      buffers.push_back(use(role));
    auto start = AllReduceStartOp::create(
        builder, loc, inflight(buffers), unitName(u), buffers[0],
        buffers.size() > 1 ? buffers[1] : mlir::Value(),
        axes(layout.units[u].replicateAxes), stream(Stream::Reduce));
    fly(start.getInflight(), std::move(roles));
  }
  void awaitAllReduce(int u, int call) {
    at(call);
    await({u, plan::Role::ShardGradient});
    if (uses.units[u].casts)
      free({u, plan::Role::Receive});
  }
  void startOffload(int u, int call) {
    at(call);
    mlir::Value shard = use({u, plan::Role::ShardGradient});
    auto start =
        OffloadStartOp::create(builder, loc, inflight({shard}), unitName(u),
                               shard, stream(Stream::HostOut));
    fly(start.getInflight(), {{u, plan::Role::ShardGradient}});
  }
  void awaitOffload(int u, int call) {
    at(call);
    await({u, plan::Role::ShardGradient});
    free({u, plan::Role::ShardGradient});
  }
  void update(int u, int call) {
    at(call);
    if (call < 0 && !layout.units[u].name.empty())
      loc = mlir::NameLoc::get(unitName(u));
    if (options.issue.hostUpdates) {
      HostStepOp::create(builder, loc, unitName(u), stream(Stream::Host));
      return;
    }
    OptimizerStepOp::create(builder, loc, unitName(u),
                            use({u, plan::Role::ShardGradient}),
                            stream(Stream::Compute));
    free({u, plan::Role::ShardGradient});
  }
  void norm() {
    loc = mlir::NameLoc::get(builder.getStringAttr("gradient norm"));
    llvm::SmallVector<mlir::Value> shards;
    const bool onHost = options.issue.hostUpdates;
    for (auto [u, unit] : llvm::enumerate(uses.units))
      if (unit.lastGradient >= 0 && !onHost)
        shards.push_back(use({static_cast<int>(u), plan::Role::ShardGradient}));
    GradNormOp::create(builder, loc, shards,
                       stream(onHost ? Stream::Host : Stream::Compute));
  }

private:
  StepUses usesOf() const;

  //===--- Stages ---------------------------------------------------------===//

  /// The norm is that of all chunks of a stage: the first one's program has it.
  static IssueOptions issueOf(const WriteOptions &options, const Slot &slot) {
    IssueOptions result = options.issue;
    result.clip &= slot.chunk == 0;
    // The stage before waits for the last gradient, which updates would delay.
    // Without them all gradients are held until the end, as they are in each
    // micro-batch but the first. A split backward sends before it updates.
    if (slot.stage > 0 && options.chunks == 1 && options.accumulation > 1 &&
        !result.splitBackward)
      result.updateInline = false;
    return result;
  }
  /// The number of the slot's chunk as the model goes through them.
  int place() const {
    return options.layout().numberOf(slot.stage, slot.chunk);
  }
  /// What the ranks of the stage hold all the time.
  bool isArgument(const plan::Unit &unit) const {
    return unit.whole && (options.stages == 1 || unit.stage == slot.stage);
  }
  /// The inputs of the graph that chunks [from, to) of the stage read.
  std::vector<int> boundTo(int from, int to) const;
  /// Of the buffers that the stage's ranks hold for the run.
  int64_t bufferBytes();
  bool isOwn(int call) const { return graph.calls[call].stage == place(); }
  bool isLastStage() const { return place() + 1 == options.layout().count(); }
  /// The values that an earlier stage than `stage` makes and this one or a
  /// later one reads: each stage sends the next one all that it and those
  /// behind it need.
  std::vector<int> crossing(int stage) const;
  /// Whether `stage` or a later one makes a gradient of the value.
  bool hasGradient(int value, int stage) const;
  mlir::Value receive(int value, int64_t shift, llvm::StringRef name);
  /// The chunk that is `shift` after the slot's is of the same stage.
  bool staysInStage(int64_t shift) const {
    return options.stages > 1 &&
           options.layout().stageOf(place() + static_cast<int>(shift)) ==
               slot.stage;
  }
  void send(mlir::Value value, int64_t shift);
  void awaitSends();
  void pause();
  mlir::LogicalResult writeForward();
  mlir::LogicalResult writeBackward();
  mlir::LogicalResult writeWeights();

  /// Where what follows is for.
  void at(int call) {
    loc = builder.getUnknownLoc();
    if (call >= 0 && !graph.calls[call].path.empty())
      loc = mlir::NameLoc::get(builder.getStringAttr(graph.calls[call].path));
  }
  mlir::StringAttr unitName(int u) {
    return builder.getStringAttr(layout.units[u].name);
  }
  StreamAttr stream(Stream stream) {
    return StreamAttr::get(builder.getContext(), stream);
  }
  mlir::ArrayAttr axes(const std::vector<std::string> &names) {
    return builder.getStrArrayAttr(
        llvm::SmallVector<llvm::StringRef>(names.begin(), names.end()));
  }

  //===--- Buffers of units -----------------------------------------------===//

  BufferType bufferType(UnitRole role) {
    return BufferType::get(
        builder.getContext(),
        plan::roleBytes(layout, layout.units[role.first], role.second),
        mlir::Type());
  }
  /// What an earlier program of the step left is an argument.
  mlir::Value use(UnitRole role) {
    mlir::Value &buffer = buffers[role];
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
  InflightType inflight(llvm::ArrayRef<mlir::Value> values) {
    llvm::SmallVector<int64_t> bytes;
    for (mlir::Value value : values)
      bytes.push_back(cast<BufferType>(value.getType()).getBytes());
    return InflightType::get(builder.getContext(), bytes);
  }
  void fly(mlir::Value inflight, std::vector<UnitRole> roles) {
    UnitRole key = roles.front();
    flights[key] = {inflight, std::move(roles)};
  }
  /// Of the collective that was started with this buffer first.
  void await(UnitRole key) {
    auto [started, roles] = flights[key];
    llvm::SmallVector<mlir::Type> types;
    for (UnitRole role : roles)
      types.push_back(bufferType(role));
    auto op =
        AwaitOp::create(builder, loc, types, started, stream(Stream::Compute));
    for (auto [role, buffer] : llvm::zip(roles, op.getBuffers()))
      buffers[role] = buffer;
    flights.erase(key);
  }

  //===--- Calls ----------------------------------------------------------===//

  BufferType valueType(plan::DType dtype, llvm::ArrayRef<int64_t> shape,
                       std::optional<int64_t> bytes = std::nullopt) {
    if (!bytes) {
      bytes = plan::itemSize(dtype);
      for (int64_t size : shape)
        *bytes *= size;
    }
    return BufferType::get(builder.getContext(), plan::alignedBytes(*bytes),
                           tensorType(builder.getContext(), dtype, shape));
  }
  mlir::InFlightDiagnostic error(int call) {
    return module.emitError()
           << "in the call of '" << graph.calls[call].path << "': ";
  }
  mlir::LogicalResult checkResults(int call, const Callee &function,
                                   size_t expected) {
    if (function.results.size() == expected)
      return mlir::success();
    return error(call) << "'" << function.name << "' returns "
                       << function.results.size() << " values, expected "
                       << expected;
  }
  struct Outputs {
    llvm::SmallVector<mlir::Type> types;
    llvm::SmallVector<std::string> names;
    llvm::SmallVector<int64_t> aliases;
  };
  Outputs forwardOutputs(int call, const Callee &function, size_t numInputs);
  mlir::ResultRange createCall(const Callee &function, int call,
                               llvm::ArrayRef<mlir::Value> inputs,
                               const std::vector<plan::ParamRef> &params,
                               llvm::ArrayRef<plan::GradRef> gradients,
                               Outputs outputs);
  mlir::LogicalResult forward(int call);
  mlir::LogicalResult backward(int call);
  mlir::LogicalResult weights(int call);
  struct Gradients {
    std::vector<GradientMode> modes;
    std::vector<plan::GradRef> refs;
  };
  Gradients gradientsOf(int call);
  mlir::FailureOr<llvm::SmallVector<mlir::Value>>
  operands(int call, const std::vector<BackwardOperand> &each);
  mlir::FailureOr<mlir::Value> operand(int call,
                                       const BackwardOperand &operand);
  mlir::LogicalResult inputGradients(int call, const Callee &function,
                                     Outputs &outputs);

  mlir::ModuleOp module;
  const plan::Plan &layout;
  const Graph &graph;
  const WriteOptions &options;
  const CalleeProvider &callee;
  const Slot slot;
  StepUses uses;
  StepIssuer<ProgramWriter> issuer;
  mlir::OpBuilder builder;
  mlir::Block *body = nullptr;
  mlir::Location loc = builder.getUnknownLoc();
  std::map<UnitRole, mlir::Value> buffers; // that are allocated
  std::map<UnitRole, std::pair<mlir::Value, std::vector<UnitRole>>> flights;
  llvm::SmallVector<mlir::Attribute> carried;
  llvm::DenseMap<int, mlir::Attribute> parameterAttrs;
  std::vector<mlir::Value> values, tangents; // by graph value
  mlir::Value predictions;                   // of an evaluation, or none
  std::vector<llvm::SmallVector<mlir::Value>> saved; // by call
  std::vector<bool> gradientSeen;                    // by parameter
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>>
      sends; // in flight, and what is sent
};

} // namespace accel::schedule

#endif // ACCEL_PASSES_SCHEDULE_PROGRAMWRITER_H
