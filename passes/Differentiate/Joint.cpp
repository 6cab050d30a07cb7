//===- Joint.cpp - A function and its gradients -----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Differentiate/Joint.h"

#include "dialects/Aten/BackwardBuilder.h"
#include "dialects/Sharding/Sharding.h"
#include "passes/Differentiate/Activity.h"
#include "passes/Loss/LossHead.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace accel;

namespace {

class JointBuilder {
public:
  JointBuilder(func::FuncOp function, ArrayRef<bool> wanted,
               ArrayRef<bool> tangents, ArrayRef<bool> carried)
      : function(function), wanted(wanted), tangents(tangents),
        carried(carried), builder(function.getContext()),
        back(builder, layout) {}

  FailureOr<func::FuncOp> run() {
    cloneForward();
    if (failed(emitBackward()))
      return failure();
    emitReturn();
    return joint;
  }

private:
  aten::BindingAttr binding(aten::BindingKind kind, int64_t index) {
    return aten::BindingAttr::get(builder.getContext(), kind, index);
  }

  void cloneForward() {
    builder.setInsertionPointAfter(function);
    joint = func::FuncOp::create(builder, function.getLoc(),
                                 (function.getName() + jointSuffix).str(),
                                 function.getFunctionType());
    joint.setPrivate();
    if (Attribute fused = function->getAttr(fusedAttr))
      joint->setAttr(fusedAttr, fused);
    Block *body = joint.addEntryBlock();
    IRMapping mapping;
    int64_t inputs = 0, params = 0;
    for (BlockArgument arg : function.getArguments()) {
      unsigned i = arg.getArgNumber();
      mapping.map(arg, body->getArgument(i));
      auto name =
          function.getArgAttrOfType<StringAttr>(i, sharding::paramArgAttr);
      if (name)
        joint.setArgAttr(i, sharding::paramArgAttr, name);
      bindings.push_back(
          binding(name ? aten::BindingKind::Param : aten::BindingKind::Input,
                  name ? params++ : inputs++));
      joint.setArgAttr(i, aten::bindingAttr, bindings.back());
    }
    builder.setInsertionPointToStart(body);
    for (Operation &op : function.getBody().front().without_terminator())
      forward.push_back(builder.clone(op, mapping));
    for (Value value :
         function.getBody().front().getTerminator()->getOperands())
      outputs.push_back(mapping.lookup(value));
    active = activeValues(joint, wanted);
    addTangents();
  }

  void addTangents() {
    SmallVector<Type> inputs(joint.getArgumentTypes());
    SmallVector<DictionaryAttr> attrs;
    joint.getAllArgAttrs(attrs);
    auto add = [&](Value of, aten::BindingKind kind, int64_t index) {
      inputs.push_back(of.getType());
      attrs.push_back(builder.getDictionaryAttr(
          builder.getNamedAttr(aten::bindingAttr, binding(kind, index))));
      contributions[of].push_back(
          joint.getBody().front().addArgument(of.getType(), of.getLoc()));
    };
    const unsigned numArguments = function.getNumArguments();
    for (auto [i, output] : llvm::enumerate(outputs))
      if (tangents[i] && active.contains(output))
        add(output, aten::BindingKind::Tangent, i);
    for (unsigned i = 0; i < numArguments; ++i)
      if (carried[i])
        add(joint.getArgument(i), aten::BindingKind::Carry,
            bindings[i].getIndex());
    joint.setFunctionType(builder.getFunctionType(inputs, {}));
    joint.setAllArgAttrs(attrs);
  }

  Location nodeLoc(Location loc, int64_t number) {
    return FusedLoc::get(builder.getContext(), {loc},
                         builder.getI64IntegerAttr(number));
  }

  LogicalResult emitBackward() {
    int64_t node = 0;
    for (Operation *op : llvm::reverse(forward)) {
      SmallVector<bool> needed = llvm::map_to_vector(
          op->getOperands(), [&](Value v) { return active.contains(v); });
      if (!llvm::is_contained(needed, true))
        continue;
      back.setLoc(nodeLoc(op->getLoc(), node++));
      SmallVector<Value> grads = llvm::map_to_vector(
          op->getResults(), [&](Value v) { return gradient(v); });
      if (llvm::any_of(grads, joinsParts))
        back.setLoc(nodeLoc(op->getLoc(), node++));
      if (llvm::none_of(grads, [](Value v) { return bool(v); }))
        continue;
      if (Value grad = movedBack(op, grads.front())) {
        contributions[op->getOperand(0)].push_back(grad);
        continue;
      }
      auto rule = dyn_cast<aten::DerivativeOpInterface>(op);
      if (!rule) {
        auto diag = op->emitOpError("has no derivative rule");
        if (isa<aten::RmsNormOp, aten::ScaledDotProductAttentionOp>(op))
          diag.attachNote() << "select-kernels replaces it by one that has";
        return diag;
      }
      SmallVector<Value> operandGrads(op->getNumOperands());
      if (failed(rule.buildBackward(back, grads, needed, operandGrads)))
        return failure();
      for (auto [operand, grad, need] :
           llvm::zip(op->getOperands(), operandGrads, needed))
        if (need && grad)
          contributions[operand].push_back(grad);
    }
    return success();
  }

  /// The gradient of rows that `op` moves between ranks: `grad` the other way.
  /// What was sliced is whole on every rank, and so is what is gathered, as the
  /// gradients of both are. Null for any other operation.
  Value movedBack(Operation *op, Value grad) {
    if (auto dispatch = dyn_cast<sharding::DispatchOp>(op))
      return back.create<sharding::CombineOp>(dispatch.getValue().getType(),
                                              grad, dispatch.getEnds(),
                                              dispatch.getAxesAttr());
    if (auto combine = dyn_cast<sharding::CombineOp>(op))
      return back.create<sharding::DispatchOp>(combine.getValue().getType(),
                                               grad, combine.getEnds(),
                                               combine.getAxesAttr());
    if (auto slice = dyn_cast<sharding::SliceOp>(op))
      return back.create<sharding::AllGatherOp>(
          slice.getValue().getType(), grad, slice.getDim(), slice.getAxis(),
          slice.getPieces(), slice.getMirrored());
    if (auto gather = dyn_cast<sharding::AllGatherOp>(op))
      return back.create<sharding::SliceOp>(
          gather.getValue().getType(), grad, gather.getDim(), gather.getAxis(),
          gather.getPieces(), gather.getMirrored());
    return {};
  }

  /// The sum of what flowed into `value` so far, in the order of arrival; null
  /// if nothing did.
  Value gradient(Value value) {
    auto found = contributions.find(value);
    if (found == contributions.end())
      return {};
    SmallVector<Value> parts = joinSlices(found->second);
    Value sum = parts.front();
    for (Value part : ArrayRef(parts).drop_front())
      sum = back.create<aten::AddTensorOp>(sum, part);
    found->second.assign({sum});
    return sum;
  }

  /// Parts of a projection (gate and up; query, key and value) are made by
  /// transformers with chunk or split, whose gradient is joined by a node of
  /// autograd of its own: the parts' gradients are gone before the next one
  /// runs. What has heads is sliced by rotary embeddings, and has none such.
  static bool joinsParts(Value grad) {
    auto cat = grad ? grad.getDefiningOp<aten::CatOp>() : aten::CatOp();
    return cat && cast<RankedTensorType>(grad.getType()).getRank() < 4;
  }

  /// Slices that together cover a dimension (the two halves of a rotary
  /// embedding) are one `cat`: the same values as a sum of zero-padded halves,
  /// without the padding.
  SmallVector<Value> joinSlices(ArrayRef<Value> parts) {
    SmallVector<aten::SliceBackwardOp> slices;
    for (Value part : parts)
      if (auto slice = part.getDefiningOp<aten::SliceBackwardOp>())
        if (slice.getStep() == 1 &&
            (slices.empty() || slices.front().getDim() == slice.getDim()))
          slices.push_back(slice);
    SmallVector<Value> joined(parts);
    if (slices.size() < 2)
      return joined;
    llvm::sort(slices,
               [](auto a, auto b) { return a.getStart() < b.getStart(); });
    int64_t covered = 0;
    SmallVector<Value> pieces;
    for (aten::SliceBackwardOp slice : slices) {
      if (static_cast<int64_t>(slice.getStart()) != covered)
        return joined;
      covered = slice.getEnd();
      pieces.push_back(slice.getGradOutput());
    }
    int64_t dim = slices.front().getDim();
    if (covered != slices.front().getInputSizes()[dim])
      return joined;
    Value cat = back.create<aten::CatOp>(pieces, dim);
    bool placed = false;
    SmallVector<Value> result;
    for (Value part : parts) {
      bool isSlice = llvm::any_of(
          slices, [&](auto slice) { return slice.getResult() == part; });
      if (!isSlice)
        result.push_back(part);
      else if (!placed)
        result.push_back(cat);
      placed |= isSlice;
    }
    return result;
  }

  void emitReturn() {
    SmallVector<Value> results(outputs);
    SmallVector<NamedAttrList> attrs(outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i)
      attrs[i].set(aten::bindingAttr, binding(aten::BindingKind::Output, i));
    for (auto kind : {aten::BindingKind::Input, aten::BindingKind::Param})
      for (auto [i, want] : llvm::enumerate(wanted)) {
        if (!want || bindings[i].getKind() != kind)
          continue;
        bool isParam = kind == aten::BindingKind::Param;
        Value grad = argumentGradient(joint.getArgument(i));
        results.push_back(isParam ? grad : apart(grad));
        NamedAttrList &attr = attrs.emplace_back();
        attr.set(aten::bindingAttr,
                 binding(isParam ? aten::BindingKind::ParamGrad
                                 : aten::BindingKind::InputGrad,
                         bindings[i].getIndex()));
        if (isParam)
          attr.set(sharding::paramArgAttr,
                   joint.getArgAttr(i, sharding::paramArgAttr));
      }
    func::ReturnOp::create(builder, function.getLoc(), results);
    joint.setFunctionType(builder.getFunctionType(
        joint.getArgumentTypes(), ValueRange(results).getTypes()));
    for (auto [i, attr] : llvm::enumerate(attrs))
      joint.setResultAttrs(i, attr.getDictionary(builder.getContext()));
    eraseUnused();
  }

  /// Gradients that leave the function are contiguous.
  Value argumentGradient(Value arg) {
    back.setLoc(arg.getLoc());
    Value grad = gradient(arg);
    if (!grad)
      return back.create<aten::ZerosLikeOp>(arg);
    return layout.isContiguous(grad) ? grad : back.create<aten::CloneOp>(grad);
  }

  /// The gradients of two inputs may be one value, that of a sum; each leaves
  /// in its own storage.
  Value apart(Value grad) {
    Value storage = grad;
    while (auto op = storage.getDefiningOp<aten::AtenOpInterface>()) {
      if (op.getCategory() != aten::Category::View)
        break;
      storage = op->getOperand(0);
    }
    return returned.insert(storage).second ? grad
                                           : back.create<aten::CloneOp>(grad);
  }

  void eraseUnused() {
    for (Operation &op :
         llvm::make_early_inc_range(llvm::reverse(joint.getBody().front())))
      if (op.use_empty() && isMemoryEffectFree(&op) &&
          !op.hasTrait<OpTrait::IsTerminator>())
        op.erase();
  }

  func::FuncOp function, joint;
  ArrayRef<bool> wanted, tangents, carried;
  OpBuilder builder;
  aten::LayoutAnalysis layout;
  aten::BackwardBuilder back;
  SmallVector<aten::BindingAttr> bindings;
  SmallVector<Operation *> forward;
  SmallVector<Value> outputs;
  DenseSet<Value> active, returned;
  DenseMap<Value, SmallVector<Value>> contributions;
};

} // namespace

FailureOr<func::FuncOp> accel::buildJoint(func::FuncOp function,
                                          ArrayRef<bool> wanted,
                                          ArrayRef<bool> tangents,
                                          ArrayRef<bool> carried) {
  return JointBuilder(function, wanted, tangents, carried).run();
}
