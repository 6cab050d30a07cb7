//===- PropagateSharding.cpp - Shardings of all values ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Aten.h"
#include "dialects/Aten/Random.h"
#include "passes/Mesh/TokenShards.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/StringMap.h"

namespace accel {
#define GEN_PASS_DEF_PROPAGATESHARDINGPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;
using namespace accel::mesh;

namespace {

constexpr llvm::StringLiteral bindingAttr = "aten.binding";

int64_t bytesOf(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.getNumElements() * ((tensor.getElementTypeBitWidth() + 7) / 8);
}

class Propagation {
public:
  Propagation(mlir::ModuleOp module, sharding::MeshOp mesh, TokenShards tokens,
              bool wholeGradients)
      : module(module), mesh(mesh), tokens(tokens),
        wholeGradients(wholeGradients) {
    for (auto param : module.getOps<sharding::ParamOp>()) {
      params[param.getFqn()] = param;
      if (ArrayAttr aliases = param.getAliasesAttr())
        for (auto alias : aliases.getAsRange<StringAttr>())
          params[alias.getValue()] = param;
    }
    for (auto function : module.getOps<func::FuncOp>())
      functions[function.getName()] = function;
  }

  LogicalResult run() {
    if (failed(tokens.verify()))
      return failure();
    for (auto function : module.getOps<func::FuncOp>())
      seed(function);
    auto graph = sharding::findOnly<sharding::GraphOp>(module);
    if (graph)
      if (auto experts = graph->getAttrOfType<sharding::ExpertsAttr>(
              sharding::expertsAttr))
        dispatched = sharding::firstAxis(experts.getAxes());
    if (graph && failed(throughGraph(graph)))
      return failure();
    for (auto function : module.getOps<func::FuncOp>())
      if (!called.contains(function))
        derive(function);
    remarks = true;
    for (auto function : module.getOps<func::FuncOp>()) {
      walk(function);
      write(function);
    }
    if (graph)
      write(graph);
    return success();
  }

private:
  ValueSharding &of(Value value) {
    auto [it, isNew] = values.try_emplace(value);
    if (isNew)
      it->second = replicated(value.getType());
    return it->second;
  }

  /// What a value was decided to be; nothing where the spec has no reason, as
  /// those that this pass writes.
  static std::optional<ValueSharding> decided(Attribute attribute) {
    auto spec = dyn_cast_or_null<sharding::SpecAttr>(attribute);
    if (!spec || !spec.getBecause())
      return std::nullopt;
    return fromSpec(spec, 0);
  }

  void seed(func::FuncOp function) {
    for (BlockArgument argument : function.getArguments())
      if (auto state = decided(function.getArgAttr(argument.getArgNumber(),
                                                   sharding::specArgAttr)))
        of(argument) = *state;
  }

  /// A parameter's sharding is decided, if only as replicated.
  ValueSharding ofParam(sharding::ParamOp param) {
    if (!param || !param.getSpecAttr())
      return param ? replicated(param.getType()) : ValueSharding();
    ValueSharding state =
        fromSpec(param.getSpecAttr(), bytesOf(param.getType()));
    for (DimSharding &dim : state.dims) {
      // Functions have a rank's experts since dispatch-experts.
      if (!dim.axes.empty() && dim.axes.front().axis == dispatched)
        dim.axes.clear();
      if (!dim.axes.empty())
        dim.priority.level = std::max(dim.priority.level, Priority::Plan);
    }
    return state;
  }

  //===--------------------------------------------------------------------===//
  // The graph
  //===--------------------------------------------------------------------===//

  LogicalResult throughGraph(sharding::GraphOp graph) {
    if (auto specs = graph->getAttrOfType<ArrayAttr>(sharding::argSpecsAttr))
      for (auto [argument, spec] :
           llvm::zip(graph.getBody().getArguments(),
                     specs.getAsRange<sharding::SpecAttr>())) {
        of(argument) = fromSpec(spec, 0);
        for (DimSharding &dim : of(argument).dims)
          if (!dim.axes.empty())
            dim.priority.level = std::max(dim.priority.level, Priority::Plan);
      }
    for (bool changed = true; changed;) {
      changed = false;
      for (auto call : graph.getBody().getOps<sharding::CallOp>()) {
        FailureOr<bool> moved = throughCall(call);
        if (failed(moved))
          return failure();
        changed |= *moved;
      }
    }
    return success();
  }

  /// True if an argument of the callee changed.
  FailureOr<bool> throughCall(sharding::CallOp call) {
    func::FuncOp callee = functions.lookup(call.getCallee());
    const bool first = called.insert(callee).second;
    bool changed = first;
    unsigned next = 0;
    for (BlockArgument argument : callee.getArguments()) {
      auto name = callee.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                      sharding::paramArgAttr);
      if (!name) {
        const ValueSharding given = of(call.getOperands()[next++]);
        changed |= join(of(argument), given);
        continue;
      }
      const std::string fqn = call.bindParam(name.getValue());
      ValueSharding state = ofParam(params.lookup(fqn));
      if (state.dims.empty())
        state = replicated(argument.getType());
      if (first)
        of(argument) = state;
      else if (toSpec(of(argument), call.getContext()) !=
               toSpec(state, call.getContext()))
        return call.emitOpError("binds '")
               << fqn << "' as " << toSpec(state, call.getContext())
               << ", but another call of '" << call.getCallee()
               << "' binds its parameter as "
               << toSpec(of(argument), call.getContext())
               << "; parameters of one function are sharded alike";
    }
    walk(callee);
    if (first && inContext()) {
      for (Value value : returned(callee)) {
        ValueSharding state = of(value);
        tokens.shard(value, state);
        wants[value] = std::move(state);
      }
      wantOperands(callee);
      walk(callee);
    }
    Operation *terminator = callee.getBody().front().getTerminator();
    for (auto [result, returned] :
         llvm::zip(call.getResults(), terminator->getOperands())) {
      ValueSharding state = of(returned);
      state.partial.clear();
      tokens.shard(result, state);
      handedOver[callee].resize(call.getNumResults());
      handedOver[callee][result.getResultNumber()] = state;
      of(result) = std::move(state);
    }
    return changed;
  }

  /// What the results of a function are to its callers.
  const ValueSharding *handed(func::FuncOp function, size_t result) const {
    auto known = handedOver.find(function);
    return known != handedOver.end() && result < known->second.size()
               ? &known->second[result]
               : nullptr;
  }

  //===--------------------------------------------------------------------===//
  // Functions
  //===--------------------------------------------------------------------===//

  /// One pass over the body: each operation's results from its operands.
  void walk(func::FuncOp function) {
    if (function.isExternal())
      return;
    for (Operation &op : function.getBody().front().without_terminator())
      through(&op);
  }

  void through(Operation *op) {
    SmallVector<const ValueSharding *> operands;
    for (Value operand : op->getOperands())
      of(operand); // no reference stays valid while values are added
    bool sharded = false;
    for (Value operand : op->getOperands()) {
      operands.push_back(&values.find(operand)->second);
      for (const DimSharding &dim : operands.back()->dims)
        sharded |= !dim.axes.empty();
    }
    SmallVector<const ValueSharding *> wanted;
    for (Value result : op->getResults()) {
      auto it = wants.find(result);
      wanted.push_back(it == wants.end() ? nullptr : &it->second);
      sharded |= wanted.back() != nullptr;
    }
    SmallVector<ValueSharding, 2> results;
    SmallVector<Conflict> conflicts;
    if (!sharded) {
      for (Type type : op->getResultTypes())
        results.push_back(replicated(type));
    } else if (auto rule = aten::shardingRule(op)) {
      results = transfer(
          *rule, operands, wanted,
          [&](StringRef axis) { return mesh.axisSize(axis); }, conflicts);
    } else {
      int64_t bytes = 0;
      for (auto [operand, state] : llvm::zip(op->getOperands(), operands))
        if (llvm::any_of(state->dims, [](const DimSharding &dim) {
              return !dim.axes.empty();
            }))
          bytes += bytesOf(operand.getType());
      if (remarks && bytes)
        op->emitRemark(
            "has no sharding rule: each rank gathers whole operands, ")
            << bytes << " bytes, and computes all of it";
      for (Type type : op->getResultTypes())
        results.push_back(replicated(type));
    }
    if (remarks)
      for (const Conflict &conflict : conflicts)
        op->emitRemark("operand ")
            << conflict.operand << " is resharded: " << conflict.why;
    auto specs = op->getAttrOfType<ArrayAttr>(sharding::specsAttr);
    for (auto [i, result] : llvm::enumerate(op->getResults())) {
      ValueSharding state = std::move(results[i]);
      if (auto own = decided(specs ? specs[i] : Attribute())) {
        own->partial = state.partial; // what the operator leaves to reduce
        state = std::move(*own);
      }
      of(result) = std::move(state);
    }
  }

  //===--------------------------------------------------------------------===//
  // Joint, forward and backward functions
  //===--------------------------------------------------------------------===//

  /// `function` is `of` without what it draws, argument by argument.
  static bool isEvalOf(func::FuncOp of, func::FuncOp function) {
    auto eval = of->getAttrOfType<FlatSymbolRefAttr>(aten::evalAttr);
    return eval && eval.getValue() == function.getName();
  }

  /// Arguments stand for values of the function that this one was derived from,
  /// and for what its forward saved. A gradient is sharded as its value.
  void derive(func::FuncOp function) {
    auto [base, kind] = function.getName().rsplit('.');
    func::FuncOp of = functions.lookup(base);
    if (of && called.contains(of)) {
      SmallVector<Value> inputs, given, outputs, saved;
      for (BlockArgument argument : of.getArguments())
        (of.getArgAttr(argument.getArgNumber(), sharding::paramArgAttr)
             ? given
             : inputs)
            .push_back(argument);
      outputs = returned(of);
      if (func::FuncOp forward = functions.lookup((base + ".forward").str()))
        for (auto [i, value] : llvm::enumerate(returned(forward)))
          if (auto binding = forward.getResultAttrOfType<aten::BindingAttr>(
                  i, bindingAttr);
              binding && binding.getKind() == aten::BindingKind::Saved)
            saved.push_back(value);
      origins[function] = of;
      if (isEvalOf(of, function))
        for (auto [argument, original] :
             llvm::zip(function.getArguments(), of.getArguments()))
          this->of(argument) = this->of(original);
      for (BlockArgument argument : function.getArguments()) {
        auto binding = function.getArgAttrOfType<aten::BindingAttr>(
            argument.getArgNumber(), bindingAttr);
        if (!binding)
          continue;
        bind(argument, binding, inputs, given, outputs, saved);
        const bool ofOutput = binding.getKind() == aten::BindingKind::Output ||
                              binding.getKind() == aten::BindingKind::Tangent;
        if (const ValueSharding *state =
                ofOutput ? handed(of, binding.getIndex()) : nullptr;
            state &&
            outputs[binding.getIndex()].getType() == argument.getType())
          this->of(argument) = *state;
      }
      parameters[function] = given;
      inputsOf[function] = inputs;
      if (tokens.any())
        walk(function);
      want(function);
    }
    walk(function);
  }

  /// The parameter that a result is the gradient of, or null.
  Value parameterOf(func::FuncOp function, unsigned result) {
    auto binding =
        function.getResultAttrOfType<aten::BindingAttr>(result, bindingAttr);
    auto of = parameters.find(function);
    if (!binding || binding.getKind() != aten::BindingKind::ParamGrad ||
        of == parameters.end())
      return {};
    const size_t index = binding.getIndex();
    return index < of->second.size() ? of->second[index] : Value();
  }

  /// Gradients should be sharded as their parameters and inputs, and under
  /// context parallelism outputs as callers have them.
  void want(func::FuncOp function) {
    const SmallVector<Value> &inputs = inputsOf[function];
    for (auto [i, value] : llvm::enumerate(returned(function))) {
      if (Value parameter = parameterOf(function, i))
        if (value.getType() == parameter.getType() &&
            !of(parameter).isReplicated())
          wants[value] = of(parameter);
      auto binding =
          function.getResultAttrOfType<aten::BindingAttr>(i, bindingAttr);
      if (binding && binding.getKind() == aten::BindingKind::InputGrad &&
          binding.getIndex() < inputs.size())
        if (Value input = inputs[binding.getIndex()];
            input.getType() == value.getType() && !of(input).isReplicated())
          wants[value] = of(input);
      if (inContext())
        if (const ValueSharding *given = handedResult(function, i, binding))
          wants[value] = *given;
    }
    wantOperands(function);
  }

  /// What is viewed, or computed element by element, to make a value is wanted
  /// as the value is; where tokens are sharded, also as the value became.
  void wantOperands(func::FuncOp function) {
    for (Operation &op :
         llvm::reverse(function.getBody().front().without_terminator())) {
      auto aten = dyn_cast<aten::AtenOpInterface>(&op);
      if (!aten || op.getNumResults() != 1 ||
          (aten.getCategory() != aten::Category::View &&
           aten.getCategory() != aten::Category::Pointwise))
        continue;
      auto it = wants.find(op.getResult(0));
      if (it == wants.end() &&
          (!tokens.any() || of(op.getResult(0)).isReplicated()))
        continue;
      const ValueSharding wanted =
          it == wants.end() ? of(op.getResult(0)) : it->second;
      auto rule = aten::shardingRule(&op);
      if (!rule)
        continue;
      for (auto [i, operand] : llvm::enumerate(op.getOperands()))
        if (operand.getDefiningOp() && isReadInParts(operand))
          wants[operand] = wantedOperand(*rule, i, wanted, [&](StringRef axis) {
            return mesh.axisSize(axis);
          });
    }
  }

  /// Nobody else would have to gather it.
  static bool isReadInParts(Value value) {
    return value.hasOneUse() ||
           llvm::all_of(value.getUsers(), [](Operation *op) {
             auto aten = dyn_cast<aten::AtenOpInterface>(op);
             return aten && aten.getCategory() == aten::Category::Pointwise;
           });
  }

  static SmallVector<Value> returned(func::FuncOp function) {
    return SmallVector<Value>(
        function.getBody().front().getTerminator()->getOperands());
  }

  void bind(BlockArgument argument, aten::BindingAttr binding,
            ArrayRef<Value> inputs, ArrayRef<Value> given,
            ArrayRef<Value> outputs, ArrayRef<Value> saved) {
    ArrayRef<Value> from;
    switch (binding.getKind()) {
    case aten::BindingKind::Input:
    case aten::BindingKind::Carry:
      from = inputs;
      break;
    case aten::BindingKind::Param:
      from = given;
      break;
    case aten::BindingKind::Output:
    case aten::BindingKind::Tangent:
      from = outputs;
      break;
    case aten::BindingKind::Saved:
      from = saved;
      break;
    case aten::BindingKind::InputGrad:
    case aten::BindingKind::ParamGrad:
      return; // of results
    }
    const size_t index = binding.getIndex();
    if (index >= from.size() || from[index].getType() != argument.getType())
      return;
    ValueSharding state = of(from[index]);
    state.partial.clear();
    of(argument) = std::move(state);
  }

  //===--------------------------------------------------------------------===//
  // Writing
  //===--------------------------------------------------------------------===//

  sharding::SpecAttr spec(Value value) {
    return toSpec(of(value), module.getContext());
  }

  void writeResults(Operation *op) {
    if (op->getNumResults() == 0)
      return;
    auto old = op->getAttrOfType<ArrayAttr>(sharding::specsAttr);
    SmallVector<Attribute> specs;
    bool any = false;
    for (auto [i, result] : llvm::enumerate(op->getResults())) {
      any |= !of(result).isReplicated();
      // A decision stays as it was written.
      const bool own = old && decided(old[i]);
      any |= own;
      specs.push_back(own ? old[i] : spec(result));
    }
    if (any)
      op->setAttr(sharding::specsAttr, ArrayAttr::get(op->getContext(), specs));
    else
      op->removeAttr(sharding::specsAttr);
  }

  void write(func::FuncOp function) {
    if (function.isExternal())
      return;
    for (BlockArgument argument : function.getArguments()) {
      const unsigned i = argument.getArgNumber();
      if (decided(function.getArgAttr(i, sharding::specArgAttr)))
        continue;
      if (of(argument).isReplicated())
        function.removeArgAttr(i, sharding::specArgAttr);
      else
        function.setArgAttr(i, sharding::specArgAttr, spec(argument));
    }
    for (Operation &op : function.getBody().front().without_terminator())
      writeResults(&op);
    for (auto [i, value] : llvm::enumerate(returned(function))) {
      ValueSharding state = of(value);
      auto binding =
          function.getResultAttrOfType<aten::BindingAttr>(i, bindingAttr);
      // Gradients of parameters are reduced with their unit, whose parts are
      // the parameters'; over the ranks of a context in any case.
      const bool ofParameter =
          binding && binding.getKind() == aten::BindingKind::ParamGrad;
      if (wholeGradients || !ofParameter)
        state.partial.clear();
      if (ofParameter && inContext() &&
          !llvm::is_contained(state.partial, tokens.contextAxis()))
        state.partial.push_back(tokens.contextAxis());
      if (Value parameter = parameterOf(function, i))
        asParameter(function, i, state, of(parameter));
      if (binding && binding.getKind() == aten::BindingKind::InputGrad)
        asInput(function, i, binding.getIndex(), state);
      if (const ValueSharding *given = handedResult(function, i, binding))
        state.dims = given->dims;
      if (state.isReplicated())
        function.removeResultAttr(
            i, StringAttr::get(module.getContext(), sharding::specArgAttr));
      else
        function.setResultAttr(i, sharding::specArgAttr,
                               toSpec(state, module.getContext()));
    }
  }

  const ValueSharding *handedResult(func::FuncOp function, size_t result,
                                    aten::BindingAttr binding) const {
    if (called.contains(function))
      return handed(function, result);
    auto origin = origins.find(function);
    if (origin != origins.end() && isEvalOf(origin->second, function))
      return handed(origin->second, result);
    return binding && binding.getKind() == aten::BindingKind::Output &&
                   origin != origins.end()
               ? handed(origin->second, binding.getIndex())
               : nullptr;
  }

  /// Whoever made the input reads the gradient as the value was.
  void asInput(func::FuncOp function, unsigned result, size_t index,
               ValueSharding &state) {
    auto inputs = inputsOf.find(function);
    if (inputs == inputsOf.end() || index >= inputs->second.size())
      return;
    const ValueSharding &input = of(inputs->second[index]);
    if (state.dims.size() != input.dims.size())
      return;
    bool same = true;
    for (auto [to, from] : llvm::zip(state.dims, input.dims)) {
      same &= to.axes == from.axes;
      to = from;
    }
    if (!same)
      function.emitRemark("result ")
          << result << ", an input's gradient, is resharded as the input";
  }

  void asParameter(func::FuncOp function, unsigned result, ValueSharding &state,
                   const ValueSharding &parameter) {
    if (state.dims.size() != parameter.dims.size())
      return;
    bool same = true;
    for (auto [to, from] : llvm::zip(state.dims, parameter.dims)) {
      same &= to.axes == from.axes;
      to = from;
    }
    // An axis that shards the parameter sums nothing any more.
    llvm::erase_if(state.partial, [&](StringRef axis) {
      return llvm::any_of(
          state.dims, [&](const DimSharding &dim) { return dim.uses(axis); });
    });
    if (!same)
      function.emitRemark("result ")
          << result
          << ", a parameter's gradient, is resharded as the parameter";
  }

  void write(sharding::GraphOp graph) {
    for (auto call : graph.getBody().getOps<sharding::CallOp>())
      writeResults(call);
  }

  mlir::ModuleOp module;
  sharding::MeshOp mesh;
  StringRef dispatched; // first of the axes over which rows of experts go
  llvm::StringMap<sharding::ParamOp> params;
  llvm::StringMap<func::FuncOp> functions;
  DenseMap<Value, ValueSharding> values, wants;
  /// Of derived functions: the parameters, and other arguments, of the function
  /// they were made of.
  DenseMap<func::FuncOp, SmallVector<Value>> parameters, inputsOf;
  /// Of derived functions: the one that they were derived from.
  DenseMap<func::FuncOp, func::FuncOp> origins;
  DenseMap<func::FuncOp, std::vector<ValueSharding>> handedOver;
  DenseSet<func::FuncOp> called;
  TokenShards tokens;
  bool inContext() const { return !tokens.contextAxis().empty(); }
  bool wholeGradients;
  bool remarks = false;
};

struct PropagateShardingPass
    : accel::impl::PropagateShardingPassBase<PropagateShardingPass> {
  using Base::Base;

  void runOnOperation() override {
    mlir::ModuleOp module = getOperation();
    auto mesh = sharding::findOnly<sharding::MeshOp>(module);
    if (!mesh)
      return;
    auto job = sharding::findOnly<sharding::JobOp>(module);
    if (mesh.axisSize(contextAxis) > 1 && mesh.axisSize(headsAxis) > 1) {
      mesh.emitError("'") << contextAxis << "' and '" << headsAxis
                          << "' both shard sequences; one of them has one rank";
      return signalPassFailure();
    }
    const TokenShards tokens(mesh, contextAxis, headsAxis, sequenceAxis,
                             job ? static_cast<int64_t>(job.getSequenceLength())
                                 : 0);
    if (failed(Propagation(module, mesh, tokens, wholeGradients).run()))
      signalPassFailure();
  }
};

} // namespace
