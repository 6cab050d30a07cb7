//===- SplitBackward.cpp - split-backward ---------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/Aten/Aten.h"
#include "dialects/Aten/InPlace.h"
#include "dialects/Aten/Layout.h"
#include "dialects/Sharding/Pipeline.h"
#include "passes/Differentiate/Joint.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/SetVector.h"

namespace accel {
#define GEN_PASS_DEF_SPLITBACKWARDPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;

namespace {

class BackwardSplitter {
public:
  BackwardSplitter(func::FuncOp backward, int64_t numSaved)
      : backward(backward), builder(backward.getContext()), numSaved(numSaved) {
  }

  LogicalResult run() {
    for (unsigned i = 0; i < backward.getNumArguments(); ++i)
      if (!backward.getArgAttrOfType<aten::BindingAttr>(i, aten::bindingAttr))
        return backward.emitOpError("argument ") << i << " has no aten.binding";
    Operation *end = backward.getBody().front().getTerminator();
    for (auto [i, value] : llvm::enumerate(end->getOperands())) {
      auto binding =
          backward.getResultAttrOfType<aten::BindingAttr>(i, aten::bindingAttr);
      if (!binding)
        return backward.emitOpError("result ") << i << " has no aten.binding";
      if (binding.getKind() == aten::BindingKind::Saved)
        return backward.emitOpError("result ")
               << i << " is saved already: it is split";
      const bool gradient = binding.getKind() == aten::BindingKind::ParamGrad;
      (gradient ? gradients : others)
          .push_back({value, backward.getResultAttrDict(i)});
    }
    if (gradients.empty())
      return success();
    choose();
    for (Operation &op : backward.getBody().front().without_terminator())
      if (late.contains(&op))
        for (Value operand : op.getOperands())
          find(operand);
    for (const auto &[value, attrs] : gradients)
      find(value);
    buildWeights();
    if (others.empty() && crossing.empty())
      backward.erase();
    else
      keepInputs();
    return success();
  }

private:
  using Result = std::pair<Value, DictionaryAttr>;

  aten::BindingAttr binding(aten::BindingKind kind, int64_t index) {
    return aten::BindingAttr::get(builder.getContext(), kind, index);
  }

  static void addSlice(Value value, DenseSet<Operation *> &slice) {
    Operation *op = value.getDefiningOp();
    if (!op || !slice.insert(op).second)
      return;
    for (Value operand : op->getOperands())
      addSlice(operand, slice);
  }

  bool isParameter(Value value) {
    while (Operation *op = value.getDefiningOp()) {
      if (!aten::isView(op))
        return false;
      value = op->getOperand(0);
    }
    return backward
               .getArgAttrOfType<aten::BindingAttr>(
                   cast<BlockArgument>(value).getArgNumber(), aten::bindingAttr)
               .getKind() == aten::BindingKind::Param;
  }

  /// `early` makes all but gradients of parameters, and reads what is gathered;
  /// `late` is the rest of what is needed at all.
  void choose() {
    DenseSet<Operation *> needed;
    for (const auto &[value, attrs] : others)
      addSlice(value, early);
    for (const auto &[value, attrs] : gradients)
      addSlice(value, needed);
    for (Operation *op : needed)
      if (!aten::isView(op) &&
          llvm::any_of(op->getOperands(),
                       [&](Value operand) { return isParameter(operand); }))
        for (Value result : op->getResults())
          addSlice(result, early);
    for (Operation *op : needed)
      if (!early.contains(op))
        late.insert(op);
  }

  /// What the weights' function must be given to have `value`.
  void find(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op)
      arguments.insert(value);
    else if (!early.contains(op))
      return; // it is in there itself
    else if (aten::isView(op))
      for (Value operand : op->getOperands())
        find(operand);
    else
      crossing.insert(value);
  }

  /// Its counterpart in the weights' function; views are made where they are
  /// read.
  Value have(Value value, IRMapping &mapping) {
    if (Value there = mapping.lookupOrNull(value))
      return there;
    Operation *view = value.getDefiningOp();
    for (Value operand : view->getOperands())
      have(operand, mapping);
    builder.clone(*view, mapping);
    return mapping.lookup(value);
  }

  void buildWeights() {
    SmallVector<std::pair<Value, NamedAttrList>> args;
    SmallVector<Type> inputs, results;
    using Kind = aten::BindingKind;
    for (Kind kind : {Kind::Input, Kind::Output, Kind::Saved, Kind::Param,
                      Kind::Tangent, Kind::Carry}) {
      for (BlockArgument arg : backward.getArguments())
        if (arguments.contains(arg) &&
            backward.getArgAttrOfType<aten::BindingAttr>(arg.getArgNumber(),
                                                         aten::bindingAttr)
                    .getKind() == kind)
          args.push_back({arg, backward.getArgAttrDict(arg.getArgNumber())});
      if (kind != Kind::Saved)
        continue;
      for (auto [i, value] : llvm::enumerate(crossing)) {
        NamedAttrList attrs;
        attrs.set(aten::bindingAttr, binding(Kind::Saved, numSaved + i));
        if (!layout.isContiguous(value))
          attrs.set(aten::stridesAttr,
                    builder.getDenseI64ArrayAttr(layout.strides(value)));
        args.push_back({value, attrs});
      }
    }
    for (const auto &[value, attrs] : args)
      inputs.push_back(value.getType());
    for (const auto &[value, attrs] : gradients)
      results.push_back(value.getType());
    builder.setInsertionPointAfter(backward);
    const std::string name = (backward.getName() + weightsSuffix).str();
    auto function =
        func::FuncOp::create(builder, backward.getLoc(), name,
                             builder.getFunctionType(inputs, results));
    function.setPrivate();
    builder.setInsertionPointToStart(function.addEntryBlock());
    IRMapping mapping;
    for (auto [i, arg] : llvm::enumerate(args)) {
      mapping.map(arg.first, function.getArgument(i));
      function.setArgAttrs(i, arg.second);
    }
    for (Operation &op : backward.getBody().front().without_terminator()) {
      if (!late.contains(&op))
        continue;
      for (Value operand : op.getOperands())
        have(operand, mapping);
      builder.clone(op, mapping);
    }
    SmallVector<Value> values;
    for (const auto &[value, attrs] : gradients)
      values.push_back(have(value, mapping));
    func::ReturnOp::create(builder, backward.getLoc(), values);
    for (auto [i, gradient] : llvm::enumerate(gradients))
      function.setResultAttrs(i, gradient.second);
  }

  /// The backward without what the other function does.
  void keepInputs() {
    Block &body = backward.getBody().front();
    SmallVector<Value> values;
    SmallVector<Attribute> attributes;
    for (const auto &[value, attrs] : others) {
      values.push_back(value);
      attributes.push_back(attrs);
    }
    for (auto [i, value] : llvm::enumerate(crossing)) {
      values.push_back(value);
      attributes.push_back(builder.getDictionaryAttr(builder.getNamedAttr(
          aten::bindingAttr, binding(aten::BindingKind::Saved, numSaved + i))));
    }
    body.getTerminator()->setOperands(values);
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
      if (!op.hasTrait<OpTrait::IsTerminator>() && !early.contains(&op))
        op.erase();
    llvm::BitVector unread(backward.getNumArguments());
    for (BlockArgument arg : body.getArguments())
      unread[arg.getArgNumber()] = arg.use_empty();
    backward.setType(builder.getFunctionType(
        body.getArgumentTypes(),
        llvm::to_vector(ValueRange(values).getTypes())));
    backward.setAllResultAttrs(attributes);
    (void)backward.eraseArguments(unread);
  }

  func::FuncOp backward;
  OpBuilder builder;
  aten::LayoutAnalysis layout;
  const int64_t numSaved; // of the forward
  SmallVector<Result> gradients, others;
  DenseSet<Operation *> early, late;
  llvm::SetVector<Value> crossing; // made by one part and read by the other
  DenseSet<Value> arguments;       // that the weights' part reads
};

int64_t numSavedBy(func::FuncOp forward) {
  int64_t saved = 0;
  for (unsigned i = 0; forward && i < forward.getNumResults(); ++i) {
    auto binding =
        forward.getResultAttrOfType<aten::BindingAttr>(i, aten::bindingAttr);
    saved += binding && binding.getKind() == aten::BindingKind::Saved;
  }
  return saved;
}

struct SplitBackwardPass
    : accel::impl::SplitBackwardPassBase<SplitBackwardPass> {
  void runOnOperation() override {
    mlir::ModuleOp module = getOperation();
    auto graph = sharding::findOnly<sharding::GraphOp>(module);
    if (!plan::splitsBackward(sharding::scheduleOf(graph)))
      return;
    const SymbolTable symbols(module);
    for (auto function : llvm::to_vector(module.getOps<func::FuncOp>())) {
      StringRef name = function.getName();
      if (!name.consume_back(backwardSuffix))
        continue;
      auto forward = symbols.lookup<func::FuncOp>((name + forwardSuffix).str());
      if (failed(BackwardSplitter(function, numSavedBy(forward)).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
