//===- WriteCalls.cpp - Calls of a program --------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Schedule/ProgramWriter.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace accel::schedule {

ResultRange ProgramWriter::createCall(const Callee &function, int call,
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
ProgramWriter::Outputs ProgramWriter::forwardOutputs(int call,
                                                     const Callee &function,
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

LogicalResult ProgramWriter::forward(int call) {
  const SegmentCall &segment = graph.calls[call];
  FailureOr<Callee> function =
      callee(slot.eval ? segment.evalFunction : segment.forwardFunction, {});
  if (failed(function))
    return failure();
  // Whoever makes the loss may return predictions behind it.
  const bool predicts = slot.eval &&
                        llvm::is_contained(segment.outputs, graph.loss) &&
                        function->results.size() == segment.outputs.size() + 1;
  if (failed(checkResults(call, *function,
                          segment.outputs.size() +
                              (slot.eval ? predicts : segment.numSaved))))
    return failure();
  SmallVector<Value> inputs;
  for (int v : segment.inputs)
    inputs.push_back(values[v]);
  Outputs outputs = forwardOutputs(call, *function, inputs.size());
  if (predicts)
    outputs.names.back() = "predictions";
  ResultRange results = createCall(
      *function, call, inputs,
      slot.eval ? segment.evalParams : segment.forwardParams, {}, outputs);
  for (auto [i, result] : llvm::enumerate(results))
    if (i < segment.outputs.size())
      values[segment.outputs[i]] = result;
    else if (predicts)
      predictions = result;
    else
      saved[call].push_back(result);
  return success();
}

FailureOr<Value> ProgramWriter::operand(int call,
                                        const BackwardOperand &operand) {
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
LogicalResult ProgramWriter::inputGradients(int call, const Callee &function,
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
                              segment.inputGradients.size() +
                              segment.numDeferred)))
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
  const auto numInputs = static_cast<int64_t>(segment.backwardOperands.size());
  for (int i = 0; i < segment.numDeferred; ++i) {
    const size_t at = outputs.names.size();
    const Callee::Result &result = function.results[at];
    const bool shares = result.sharesWith >= 0;
    outputs.names.push_back(segment.path + ":deferred " + std::to_string(i));
    outputs.types.push_back(valueType(result.dtype, result.shape,
                                      shares ? 0 : result.storageBytes));
    outputs.aliases.push_back(shares ? numInputs + result.sharesWith : -1);
  }
  return success();
}

ProgramWriter::Gradients ProgramWriter::gradientsOf(int call) {
  const SegmentCall &segment = graph.calls[call];
  Gradients result;
  for (const plan::ParamRef &p : segment.gradients) {
    const bool accumulate =
        gradientSeen[p.parameter] || issuer.accumulates(p.unit);
    gradientSeen[p.parameter] = true;
    const plan::Unit &unit = layout.units[p.unit];
    result.modes.push_back({accumulate, uses.units[p.unit].writesShard
                                            ? unit.storage
                                            : unit.reduce});
    result.refs.push_back({p.unit, p.parameter, accumulate});
  }
  return result;
}

FailureOr<SmallVector<Value>>
ProgramWriter::operands(int call, const std::vector<BackwardOperand> &each) {
  SmallVector<Value> values;
  for (const BackwardOperand &one : each) {
    FailureOr<Value> value = operand(call, one);
    if (failed(value))
      return failure();
    values.push_back(*value);
  }
  return values;
}

LogicalResult ProgramWriter::backward(int call) {
  const SegmentCall &segment = graph.calls[call];
  Gradients gradients;
  if (segment.weightsFunction.empty())
    gradients = gradientsOf(call);
  FailureOr<Callee> function =
      callee(segment.backwardFunction, gradients.modes);
  if (failed(function))
    return failure();
  FailureOr<SmallVector<Value>> inputs =
      operands(call, segment.backwardOperands);
  if (failed(inputs))
    return failure();
  Outputs outputs;
  if (failed(inputGradients(call, *function, outputs)))
    return failure();
  ResultRange results =
      createCall(*function, call, *inputs, segment.backwardParams,
                 gradients.refs, outputs);
  size_t next = 0;
  if (segment.forwardFunction.empty())
    for (int v : segment.outputs)
      values[v] = results[next++];
  for (int input : segment.inputGradients)
    tangents[segment.inputs[input]] = results[next++];
  for (; next < results.size(); ++next)
    saved[call].push_back(results[next]);
  return success();
}

LogicalResult ProgramWriter::weights(int call) {
  const SegmentCall &segment = graph.calls[call];
  const Gradients gradients = gradientsOf(call);
  FailureOr<Callee> function = callee(segment.weightsFunction, gradients.modes);
  if (failed(function) || failed(checkResults(call, *function, 0)))
    return failure();
  FailureOr<SmallVector<Value>> inputs =
      operands(call, segment.weightsOperands);
  if (failed(inputs))
    return failure();
  createCall(*function, call, *inputs, {}, gradients.refs, {});
  return success();
}

} // namespace accel::schedule
