//===- WritePrograms.cpp - From segment calls to programs -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Schedule/ProgramWriter.h"
#include "runtime/plan/Timeline.h"

#include <set>

using namespace mlir;

namespace accel::schedule {

static std::vector<int> unitsOf(const std::vector<plan::ParamRef> &params) {
  std::set<int> units;
  for (const plan::ParamRef &p : params)
    units.insert(p.unit);
  return {units.begin(), units.end()};
}

StepUses ProgramWriter::usesOf() const {
  StepUses result(static_cast<int>(layout.units.size()));
  for (auto [u, unit] : llvm::enumerate(layout.units)) {
    StepUses::Unit &flags = result.units[u];
    flags.gathered = !plan::readsShard(layout, unit);
    flags.whole = unit.whole;
    flags.reshardAfterForward = slot.eval || options.reshardAfterForward[u];
    flags.writesShard = plan::writesShardGradient(layout, unit);
    flags.receives =
        !unit.shardAxes.empty() && options.reduceScatter == "all_to_all";
    flags.replicated = !unit.replicateAxes.empty();
    flags.tied = plan::isTied(unit);
    flags.casts = !unit.hook.empty();
  }
  // A later chunk of a stage has the backward of a micro-batch first.
  std::vector<std::set<int>> writers(layout.units.size()); // chunks, by number
  for (const SegmentCall &call : graph.calls)
    for (const plan::ParamRef &p : call.gradients)
      writers[p.unit].insert(call.stage);
  for (auto [u, chunks] : llvm::enumerate(writers)) {
    if (chunks.size() < 2)
      continue;
    StepUses::Unit &flags = result.units[u];
    flags.shared = true;
    flags.begun = place() != *chunks.rbegin();
    flags.endedElsewhere = place() != *chunks.begin();
  }
  const std::vector<int> none;
  for (const SegmentCall &call : graph.calls)
    if (call.stage != place())
      result.addCall(none, none, none, false, false);
    else if (slot.eval)
      result.addCall(unitsOf(call.evalParams), none, none, true, false);
    else
      result.addCall(unitsOf(call.forwardParams), unitsOf(call.backwardParams),
                     unitsOf(call.gradients), !call.forwardFunction.empty(),
                     !call.backwardFunction.empty() ||
                         !call.weightsFunction.empty());
  result.finish();
  return result;
}

std::vector<int> ProgramWriter::crossing(int stage) const {
  std::vector<bool> made(graph.values.size()), read(graph.values.size());
  for (const SegmentCall &call : graph.calls)
    for (int v : call.stage < stage ? call.outputs : call.inputs)
      (call.stage < stage ? made : read)[v] = true;
  std::vector<int> result;
  for (size_t v = 0; v < made.size(); ++v)
    if (made[v] && read[v])
      result.push_back(static_cast<int>(v));
  return result;
}

bool ProgramWriter::hasGradient(int value, int stage) const {
  return llvm::any_of(graph.calls, [&](const SegmentCall &call) {
    return call.stage >= stage &&
           llvm::any_of(call.inputGradients,
                        [&](int input) { return call.inputs[input] == value; });
  });
}

Value ProgramWriter::receive(int value, int64_t shift, StringRef name) {
  return ReceiveOp::create(
      builder, loc,
      valueType(graph.values[value].dtype, graph.values[value].shape),
      builder.getStringAttr(name), builder.getI64IntegerAttr(shift),
      stream(Stream::Compute));
}

void ProgramWriter::send(Value value, int64_t shift) {
  if (staysInStage(shift)) {
    HandOverOp::create(builder, loc, value, builder.getI64IntegerAttr(shift),
                       stream(Stream::Compute));
    return;
  }
  auto start = SendStartOp::create(builder, loc, inflight({value}), value,
                                   builder.getI64IntegerAttr(shift),
                                   stream(Stream::Send));
  sends.emplace_back(start.getInflight(), value);
}

void ProgramWriter::awaitSends() {
  for (auto [inflight, value] : sends)
    AwaitSendOp::create(builder, loc, inflight, value, stream(Stream::Compute));
  sends.clear();
}

LogicalResult ProgramWriter::writeForward() {
  loc = builder.getUnknownLoc();
  for (int v : crossing(place()))
    values[v] = receive(v, 1, graph.values[v].name);
  for (int c = 0; c < uses.numCalls(); ++c) {
    if (!uses.hasForward(c))
      continue;
    issuer.beforeForward(c);
    if (failed(forward(c)))
      return failure();
    issuer.afterForward(c);
  }
  loc = builder.getUnknownLoc();
  if (!isLastStage())
    for (int v : crossing(place() + 1)) {
      if (!values[v])
        return module.emitError()
               << "the next stage reads '" << graph.values[v].name
               << "', which only a backward makes";
      send(values[v], 1);
    }
  if (slot.eval)
    awaitSends();
  else if (options.stages > 1)
    pause();
  return success();
}

void ProgramWriter::pause() {
  PauseOp::create(builder, builder.getUnknownLoc(), stream(Stream::Compute));
}

LogicalResult ProgramWriter::writeBackward() {
  // The next stage has received what it now sends the gradients of.
  awaitSends();
  if (!isLastStage())
    for (int v : crossing(place() + 1))
      if (hasGradient(v, place() + 1))
        tangents[v] = receive(v, -1, "grad " + graph.values[v].name);
  issuer.endForward();
  for (int c = uses.numCalls(); c-- > 0;) {
    if (!isOwn(c) || graph.calls[c].backwardFunction.empty())
      continue;
    issuer.beforeBackward(c);
    if (failed(backward(c)))
      return failure();
    issuer.afterBackward(c);
  }
  loc = builder.getUnknownLoc();
  for (int v : crossing(place())) {
    if (!hasGradient(v, place()))
      continue;
    const Type type = valueType(graph.values[v].dtype, graph.values[v].shape);
    if (!tangents[v] || tangents[v].getType() != type)
      return module.emitError() << "the gradient of '" << graph.values[v].name
                                << "' is not what the stage before expects";
    send(tangents[v], -1);
  }
  // A stage of several chunks has other parts to run before the stage that it
  // sends to receives, or sums what both have.
  const bool chunked = options.chunks > 1;
  if (options.issue.splitBackward) {
    pause();
    if (!chunked)
      awaitSends();
    if (failed(writeWeights()))
      return failure();
  }
  if (chunked) {
    issuer.endReductions();
    pause();
  }
  issuer.endBackward();
  loc = builder.getUnknownLoc();
  awaitSends();
  if (!slot.last)
    return success();
  if (chunked && !options.issue.updateInline)
    pause();
  issuer.update();
  return success();
}

/// Gradients of parameters wait until the stage before has those of what it
/// has sent.
LogicalResult ProgramWriter::writeWeights() {
  for (int c = uses.numCalls(); c-- > 0;) {
    if (!isOwn(c) || graph.calls[c].weightsFunction.empty())
      continue;
    issuer.beforeWeights(c);
    if (failed(weights(c)))
      return failure();
    issuer.afterWeights(c);
  }
  return success();
}

std::vector<int> ProgramWriter::boundTo(int from, int to) const {
  std::vector<bool> read(graph.values.size());
  for (const SegmentCall &call : graph.calls)
    for (int chunk = from; chunk < to; ++chunk)
      if (call.stage == options.layout().numberOf(slot.stage, chunk))
        for (int v : call.inputs)
          read[v] = true;
  std::vector<int> bound;
  for (int v : graph.inputs)
    if (options.stages == 1 || read[v])
      bound.push_back(v);
  return bound;
}

/// As plan::persistentBytes counts them once there are programs.
int64_t ProgramWriter::bufferBytes() {
  int64_t bytes = 0;
  for (int v : boundTo(0, options.chunks))
    if (const GraphValue &value = graph.values[v];
        plan::isBuffer(layout, value.name))
      bytes += valueType(value.dtype, value.shape).getBytes();
  return bytes;
}

LogicalResult ProgramWriter::write(StringRef name) {
  const std::vector<int> bound = boundTo(slot.chunk, slot.chunk + 1);
  const bool seeded = !slot.eval && isLastStage();
  SmallVector<StringRef> names;
  for (int v : bound)
    names.push_back(graph.values[v].name);
  if (seeded)
    names.push_back("loss_seed");
  int64_t persistent =
      plan::persistentBytes(layout, slot.stage) + bufferBytes();
  for (const plan::Unit &unit : layout.units)
    if (isArgument(unit))
      persistent -= plan::roleBytes(layout, unit, plan::Role::Gathered);
  auto program = ProgramOp::create(
      builder, loc, builder.getStringAttr(name), builder.getStrArrayAttr(names),
      builder.getArrayAttr({}), builder.getI64IntegerAttr(persistent),
      builder.getI64IntegerAttr(persistent), builder.getI64IntegerAttr(-1));
  if (options.stages > 1)
    program->setAttr(stageAttr, builder.getI64IntegerAttr(slot.stage));
  if (slot.chunk > 0)
    program->setAttr(chunkAttr, builder.getI64IntegerAttr(slot.chunk));
  body = builder.createBlock(&program.getBody());
  auto addInput = [&](StringRef input, Type type) {
    return body->addArgument(type, NameLoc::get(builder.getStringAttr(input)));
  };
  values.resize(graph.values.size());
  tangents.resize(graph.values.size());
  saved.resize(graph.calls.size());
  gradientSeen.resize(layout.parameters.size());
  for (int v : bound) {
    const GraphValue &value = graph.values[v];
    const bool stays = plan::isBuffer(layout, value.name);
    values[v] = addInput(value.name, valueType(value.dtype, value.shape,
                                               stays ? std::optional<int64_t>(0)
                                                     : std::nullopt));
  }
  if (seeded)
    tangents[graph.loss] =
        addInput("loss_seed", valueType(plan::DType::F32, {}));

  for (auto [u, unit] : llvm::enumerate(layout.units))
    if (isArgument(unit))
      use({static_cast<int>(u), plan::Role::Gathered});
  issuer.begin(slot.first, slot.last);
  if (failed(writeForward()) || (!slot.eval && failed(writeBackward())))
    return failure();
  if (isLastStage() && !values[graph.loss])
    return program.emitOpError("does not compute the loss");
  loc = builder.getUnknownLoc();
  SmallVector<Value> kept;
  for (const auto &[role, buffer] : buffers)
    kept.push_back(buffer);
  ReturnOp::create(builder, loc, isLastStage() ? values[graph.loss] : Value(),
                   predictions, kept);
  program.setCarriedAttr(builder.getArrayAttr(carried));
  return success();
}

LogicalResult writePrograms(ModuleOp module, const plan::Plan &layout,
                            const Graph &graph, const WriteOptions &options,
                            const CalleeProvider &callee) {
  for (int i = 0; i < options.stages * options.chunks; ++i) {
    const int stage = i / options.chunks, chunk = i % options.chunks;
    std::string prefix =
        options.stages > 1 ? "stage" + std::to_string(stage) + "." : "";
    if (chunk > 0)
      prefix += "chunk" + std::to_string(chunk) + ".";
    auto write = [&](StringRef name, Slot slot) {
      slot.stage = stage;
      slot.chunk = chunk;
      return ProgramWriter(module, layout, graph, options, callee, slot)
          .write(prefix + name.str());
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
    if (failed(write("eval", {true, true, /*eval=*/true})))
      return failure();
  }
  return success();
}

} // namespace accel::schedule
