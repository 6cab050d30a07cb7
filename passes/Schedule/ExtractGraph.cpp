//===- ExtractGraph.cpp - Segment calls from the IR -----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Schedule/ExtractGraph.h"

#include "dialects/Aten/Random.h"
#include "dialects/Sharding/Pipeline.h"
#include "passes/Export/BuildSkeleton.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace accel::schedule {
namespace {

aten::BindingAttr argBinding(func::FuncOp function, unsigned i) {
  return function.getArgAttrOfType<aten::BindingAttr>(i, aten::bindingAttr);
}
aten::BindingAttr resultBinding(func::FuncOp function, unsigned i) {
  return function.getResultAttrOfType<aten::BindingAttr>(i, aten::bindingAttr);
}

class Extractor {
public:
  Extractor(mlir::ModuleOp module, const plan::Plan &plan, Graph &graph)
      : module(module), plan(plan), graph(graph), symbols(module) {
    for (auto [i, p] : llvm::enumerate(plan.parameters)) {
      parameters[p.fqn] = static_cast<int>(i);
      for (const std::string &alias : p.aliases)
        parameters[alias] = static_cast<int>(i);
    }
  }

  LogicalResult run() {
    auto op = sharding::findOnly<sharding::GraphOp>(module);
    if (!op)
      return module.emitError("lower-to-schedule needs a sharding.graph");
    layout = sharding::chunkLayoutOf(op, plan.axisSize(plan::pipelineAxis));
    for (auto [arg, name] :
         llvm::zip(op.getBody().getArguments(),
                   op.getArgNames().getAsRange<StringAttr>())) {
      graph.inputs.push_back(addValue(arg, name.str()));
    }
    for (auto call : op.getBody().getOps<sharding::CallOp>())
      if (failed(addCall(call)))
        return failure();
    graph.loss =
        values.lookup(op.getBody().front().getTerminator()->getOperand(0));
    return success();
  }

private:
  int addValue(Value value, std::string name) {
    auto type = cast<RankedTensorType>(value.getType());
    GraphValue v;
    v.name = std::move(name);
    v.dtype = toDType(type.getElementType()).value_or(plan::DType::F32);
    v.shape = type.getShape().vec();
    int index = static_cast<int>(graph.values.size());
    graph.values.push_back(std::move(v));
    values[value] = index;
    return index;
  }

  LogicalResult addCall(sharding::CallOp op) {
    SegmentCall call;
    call.path = op.getPath().str();
    call.stage = static_cast<int>(sharding::stageOf(op));
    for (Value operand : op.getOperands())
      call.inputs.push_back(values.lookup(operand));
    for (auto [i, result] : llvm::enumerate(op.getResults()))
      call.outputs.push_back(addValue(
          result, (call.path.empty() ? op.getCallee().str() : call.path) +
                      (op.getNumResults() > 1 ? ":" + std::to_string(i) : "")));
    auto weights = symbols.lookup<func::FuncOp>(
        (op.getCallee() + ".backward.weights").str());
    auto eval = symbols.lookup<func::FuncOp>(op.getCallee());
    auto forward =
        symbols.lookup<func::FuncOp>((op.getCallee() + ".forward").str());
    auto backward =
        symbols.lookup<func::FuncOp>((op.getCallee() + ".backward").str());
    auto other = eval->getAttrOfType<FlatSymbolRefAttr>(aten::evalAttr);
    call.evalFunction = (other ? other.getValue() : op.getCallee()).str();
    SmallVector<StringRef> names;
    for (unsigned i = 0; i < eval.getNumArguments(); ++i)
      if (auto name =
              eval.getArgAttrOfType<StringAttr>(i, sharding::paramArgAttr))
        names.push_back(name.getValue());
    bound.clear();
    for (StringRef name : names) {
      std::string fqn = op.bindParam(name);
      auto it = parameters.find(fqn);
      if (it == parameters.end())
        return op.emitOpError()
               << "reads '" << fqn << "', which is no parameter of the model";
      const int unit =
          plan::unitIn(plan, it->second, layout.stageOf(call.stage));
      if (unit < 0)
        return op.emitOpError() << "reads '" << fqn << "', which stage "
                                << call.stage << " does not hold";
      bound.push_back({unit, it->second});
    }
    call.evalParams = bound;
    if (!forward && !backward && !weights) {
      // Nothing of it is trained: there is no backward.
      call.forwardFunction = op.getCallee().str();
      call.forwardParams = bound;
      graph.calls.push_back(std::move(call));
      return success();
    }
    if (forward) {
      call.forwardFunction = forward.getName().str();
      for (unsigned i = 0; i < forward.getNumArguments(); ++i)
        if (auto b = argBinding(forward, i);
            b && b.getKind() == aten::BindingKind::Param)
          call.forwardParams.push_back(bound[b.getIndex()]);
      call.numSaved =
          static_cast<int>(forward.getNumResults() - op.getNumResults());
    }
    if (backward && failed(addBackward(backward, call)))
      return failure();
    if (weights && failed(addWeights(weights, call)))
      return failure();
    graph.calls.push_back(std::move(call));
    return success();
  }

  LogicalResult addOperands(func::FuncOp backward,
                            std::vector<plan::ParamRef> &params,
                            std::vector<BackwardOperand> &operands) {
    for (unsigned i = 0; i < backward.getNumArguments(); ++i) {
      auto b = argBinding(backward, i);
      if (!b)
        return backward.emitOpError()
               << "argument " << i << " has no aten.binding";
      using Kind = BackwardOperand::Kind;
      int index = static_cast<int>(b.getIndex());
      switch (b.getKind()) {
      case aten::BindingKind::Param:
        params.push_back(bound[index]);
        break;
      case aten::BindingKind::Input:
        operands.push_back({Kind::Input, index});
        break;
      case aten::BindingKind::Output:
        operands.push_back({Kind::Output, index});
        break;
      case aten::BindingKind::Saved:
        operands.push_back({Kind::Saved, index});
        break;
      case aten::BindingKind::Tangent:
        operands.push_back({Kind::Tangent, index});
        break;
      case aten::BindingKind::Carry:
        operands.push_back({Kind::Carry, index});
        break;
      default:
        return backward.emitOpError()
               << "argument " << i << " is bound to a gradient";
      }
    }
    return success();
  }

  LogicalResult addBackward(func::FuncOp backward, SegmentCall &call) {
    call.backwardFunction = backward.getName().str();
    if (failed(
            addOperands(backward, call.backwardParams, call.backwardOperands)))
      return failure();
    for (unsigned i = 0; i < backward.getNumResults(); ++i) {
      auto b = resultBinding(backward, i);
      if (b && b.getKind() == aten::BindingKind::Output &&
          call.forwardFunction.empty())
        continue;
      if (b && b.getKind() == aten::BindingKind::InputGrad)
        call.inputGradients.push_back(static_cast<int>(b.getIndex()));
      else if (b && b.getKind() == aten::BindingKind::ParamGrad)
        call.gradients.push_back(bound[b.getIndex()]);
      else if (b && b.getKind() == aten::BindingKind::Saved)
        ++call.numDeferred;
      else
        return backward.emitOpError()
               << "result " << i << " is bound to no gradient";
    }
    return success();
  }

  LogicalResult addWeights(func::FuncOp weights, SegmentCall &call) {
    call.weightsFunction = weights.getName().str();
    std::vector<plan::ParamRef> params;
    if (failed(addOperands(weights, params, call.weightsOperands)))
      return failure();
    if (!params.empty())
      return weights.emitOpError("reads a parameter, which is gathered for '")
             << call.backwardFunction << "' alone";
    for (unsigned i = 0; i < weights.getNumResults(); ++i) {
      auto b = resultBinding(weights, i);
      if (!b || b.getKind() != aten::BindingKind::ParamGrad)
        return weights.emitOpError()
               << "result " << i << " is no gradient of a parameter";
      call.gradients.push_back(bound[b.getIndex()]);
    }
    return success();
  }

  mlir::ModuleOp module;
  const plan::Plan &plan;
  Graph &graph;
  plan::ChunkLayout layout;
  SymbolTable symbols;
  llvm::StringMap<int> parameters;
  DenseMap<Value, int> values;
  std::vector<plan::ParamRef> bound; // of the call at hand
};

} // namespace

LogicalResult extractGraph(mlir::ModuleOp module, const plan::Plan &plan,
                           Graph &graph) {
  return Extractor(module, plan, graph).run();
}

} // namespace accel::schedule
