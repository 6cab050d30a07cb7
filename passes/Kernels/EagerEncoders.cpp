//===- EagerEncoders.cpp - Encoders as transformers computes them ---------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/EagerEncoders.h"

#include "dialects/Aten/Eager.h"
#include "dialects/Aten/Types.h"
#include "dialects/Sharding/Sharding.h"
#include "passes/Kernels/SelectAttention.h"

using namespace mlir;
using namespace accel;
using accel::aten::tensorType;
using accel::eager::make;

namespace {

Type elementOf(Value value) { return tensorType(value).getElementType(); }

double numberOf(Attribute number) {
  if (auto real = dyn_cast<FloatAttr>(number))
    return real.getValueAsDouble();
  return double(cast<IntegerAttr>(number).getInt());
}

class Encoders {
public:
  Encoders(ModuleOp module, bool cpu)
      : module(module), graph(sharding::findOnly<sharding::GraphOp>(module)),
        cpu(cpu) {}

  LogicalResult run(func::FuncOp function) {
    changed.clear();
    SmallVector<Operation *> ops;
    function.walk([&](Operation *op) { ops.push_back(op); });
    SmallVector<Operation *> math;
    for (Operation *op : ops) {
      if (op->hasAttr(aten::mathAttr))
        math.push_back(op);
      if (auto slice = dyn_cast<aten::SliceTensorOp>(op))
        lookUp(slice);
      else if (auto rows = dyn_cast<aten::EmbeddingOp>(op))
        lookUpOnce(rows);
      else if (auto copy = dyn_cast<aten::ToCopyOp>(op))
        keepType(copy);
      else if (auto sum = dyn_cast<aten::AddTensorOp>(op))
        fill(function, sum);
      else if (auto attention = dyn_cast<aten::ScaledDotProductAttentionOp>(op))
        form(function, attention);
    }
    if (cpu)
      widen(math);
    else
      attend(math);
    if (changed.empty())
      return success();
    if (failed(eager::inferUsers(function, changed)))
      return failure();
    keepResults(function);
    return success();
  }

private:
  void replace(Operation *op, Value value) {
    op->getResult(0).replaceAllUsesWith(value);
    changed.push_back(value);
    op->erase();
  }

  /// Looks rows up that other devices take as a slice.
  void lookUp(aten::SliceTensorOp slice) {
    auto shape = slice->getAttrOfType<DenseI64ArrayAttr>(aten::lookedUpAttr);
    if (!shape)
      return;
    const int64_t held = shape[0], used = shape[1], tokens = shape[2];
    OpBuilder b(slice);
    Location loc = slice.getLoc();
    Value at = make<aten::ArangeOp>(b, loc, uint64_t(0), uint64_t(tokens),
                                    uint64_t(1), Type(b.getI64Type()));
    if (slice.getEnd() == 1)
      at = make<aten::ZerosLikeOp>(b, loc, at);
    at = make<aten::UnsqueezeOp>(b, loc, at, uint64_t(0));
    if (held > 1) {
      at = make<aten::ExpandOp>(b, loc, at, ArrayRef<int64_t>{held, tokens});
      at = make<aten::CloneOp>(b, loc, at);
    }
    if (used != held)
      at = make<aten::ExpandOp>(b, loc, at, ArrayRef<int64_t>{used, tokens});
    replace(slice,
            make<aten::EmbeddingOp>(b, loc, slice.getSelf(), at, uint64_t(-1)));
  }

  /// Rows of rows of a table are rows of it.
  void lookUpOnce(aten::EmbeddingOp rows) {
    auto inner = rows.getWeight().getDefiningOp<aten::EmbeddingOp>();
    if (!inner || !inner.getResult().hasOneUse())
      return;
    OpBuilder b(rows);
    Location loc = rows.getLoc();
    Value at = make<aten::IndexTensorOp>(b, loc, inner.getIndices(),
                                         ValueRange(rows.getIndices()),
                                         ArrayRef<int64_t>{0});
    replace(rows, make<aten::EmbeddingOp>(b, loc, inner.getWeight(), at,
                                          inner.getPaddingIdx()));
    inner.erase();
  }

  void keepType(aten::ToCopyOp copy) {
    if (copy->hasAttr(aten::ownTypeAttr) &&
        copy.getSelf().getType() != copy.getResult().getType())
      replace(copy, copy.getSelf());
  }

  Value least(OpBuilder &b, Location loc, Type type) {
    return make<aten::FullOp>(b, loc, ArrayRef<int64_t>{1},
                              b.getF64FloatAttr(leastOf(type)), type);
  }

  void fill(func::FuncOp function, aten::AddTensorOp sum) {
    auto how = sum->getAttrOfType<StringAttr>(aten::biasedAttr);
    if (!how)
      return;
    OpBuilder b(sum);
    Location loc = sum.getLoc();
    if (how.getValue() == aten::biasPlain) {
      sum.getResult().replaceAllUsesWith(sum.getSelf());
      sum.erase();
    } else if (how.getValue() == aten::biasOrdered) {
      Value bias = sum.getOther();
      const int64_t size = tensorType(bias).getDimSize(2);
      Value seen =
          make<aten::LogicalNotOp>(b, loc, eager::laterKeys(b, loc, size));
      seen =
          make<aten::ViewOp>(b, loc, seen, ArrayRef<int64_t>{1, 1, size, size});
      sum.getOtherMutable().assign(make<aten::WhereSelfOp>(
          b, loc, seen, bias, least(b, loc, elementOf(bias))));
    } else {
      fillByMask(function, sum);
    }
  }

  void fillByMask(func::FuncOp function, aten::AddTensorOp sum) {
    auto mask = dyn_cast<BlockArgument>(sum.getOther());
    if (!mask || !mask.hasOneUse() || !graph)
      return;
    auto shape = tensorType(sum.getResult());
    auto type = RankedTensorType::get(
        {shape.getDimSize(0), 1, shape.getDimSize(2), shape.getDimSize(3)},
        IntegerType::get(sum.getContext(), 1));
    for (auto call :
         llvm::to_vector(graph.getBody().getOps<sharding::CallOp>()))
      if (call.getCallee() == function.getSymName())
        call->setOperand(mask.getArgNumber(),
                         truthOf(call.getOperand(mask.getArgNumber()), type));
    mask.setType(type);
    eager::updateType(function);
    OpBuilder b(sum);
    Location loc = sum.getLoc();
    Value bias = sum.getSelf();
    Value filled = make<aten::WhereSelfOp>(b, loc, mask, bias,
                                           least(b, loc, elementOf(bias)));
    sum.getResult().replaceAllUsesWith(filled);
    sum.erase();
  }

  /// Made once after `added`, what is added to scores.
  Value truthOf(Value added, RankedTensorType type) {
    if (Value &made = truth[added])
      return made;
    OpBuilder b(module.getContext());
    b.setInsertionPointToEnd(module.getBody());
    Location loc = added.getLoc();
    auto maker = func::FuncOp::create(
        b, loc, "KeyMask" + std::to_string(truth.size()),
        b.getFunctionType({added.getType()}, {Type(type)}));
    maker.setPrivate();
    b.setInsertionPointToStart(maker.addEntryBlock());
    Value seen = make<aten::GtScalarOp>(b, loc, maker.getArgument(0),
                                        TypedAttr(b.getF64FloatAttr(-1)));
    seen = make<aten::ExpandOp>(b, loc, seen, type.getShape());
    seen = make<aten::CloneOp>(b, loc, seen);
    func::ReturnOp::create(b, loc, ValueRange(seen));
    b.setInsertionPointAfterValue(added);
    StringRef path;
    if (auto call = added.getDefiningOp<sharding::CallOp>())
      path = call.getPath();
    return truth[added] =
               sharding::CallOp::create(b, loc, TypeRange(Type(type)),
                                        maker.getSymName(), ValueRange(added),
                                        path, sharding::CheckpointAttr())
                   .getResult(0);
  }

  void form(func::FuncOp function, aten::ScaledDotProductAttentionOp op) {
    OpBuilder b(op);
    Location loc = op.getLoc();
    if (op->hasAttr(aten::byHeadsAttr))
      for (unsigned i : {0u, 1u, 2u})
        op->setOperand(i, make<aten::CloneOp>(b, loc, op->getOperand(i)));
    auto how = op->getAttrOfType<StringAttr>(aten::maskedAttr);
    if (!how || how.getValue() != aten::maskBias)
      return;
    auto query = tensorType(op.getQuery());
    auto type =
        RankedTensorType::get({1, query.getDimSize(1), query.getDimSize(2),
                               tensorType(op.getKey()).getDimSize(2)},
                              query.getElementType());
    Value bias;
    if (Value mask = op.getMask())
      bias = make<aten::AddTensorOp>(b, loc, zeros(b, loc, type), mask);
    else
      bias = sharedZeros(function, type);
    if (bias)
      op.getMaskMutable().assign(bias);
  }

  Value zeros(OpBuilder &b, Location loc, RankedTensorType type) {
    return make<aten::FullOp>(b, loc, type.getShape(), b.getF64FloatAttr(0),
                              type.getElementType());
  }

  /// The zeros that the first layer makes and hands to the others: an input of
  /// `function`, after its other ones.
  Value sharedZeros(func::FuncOp function, RankedTensorType type) {
    SmallVector<sharding::CallOp> calls;
    if (graph)
      for (auto call : graph.getBody().getOps<sharding::CallOp>())
        if (call.getCallee() == function.getSymName())
          calls.push_back(call);
    if (calls.empty())
      return {};
    sharding::CallOp first = calls.front();
    const unsigned at = first.getNumOperands();
    Location loc = first.getLoc();
    if (failed(function.insertArgument(at, type, {}, loc)))
      return {};
    OpBuilder b(module.getContext());
    b.setInsertionPointToEnd(module.getBody());
    Value source = first.getOperands().front();
    auto maker = func::FuncOp::create(
        b, loc, (function.getSymName() + "Bias").str(),
        b.getFunctionType({source.getType()}, {Type(type)}));
    maker.setPrivate();
    b.setInsertionPointToStart(maker.addEntryBlock());
    func::ReturnOp::create(b, loc, ValueRange(zeros(b, loc, type)));
    b.setInsertionPoint(first);
    // FQN of the module that owns the layer's ModuleList.
    StringRef path = first.getPath().rsplit('.').first.rsplit('.').first;
    Value made = sharding::CallOp::create(
                     b, loc, TypeRange(Type(type)), maker.getSymName(),
                     ValueRange(source), path, sharding::CheckpointAttr())
                     .getResult(0);
    for (sharding::CallOp call : calls)
      call.getOperandsMutable().append(made);
    return function.getArgument(at);
  }

  /// PyTorch's _scaled_dot_product_attention_math takes fp32 copies of what has
  /// 16 bits (allowFP16BF16ReductionMathSDP is off). Autocast's own copies in
  /// between stay.
  void widen(ArrayRef<Operation *> ops) {
    for (size_t i = 0; i + 4 <= ops.size(); i += 4) {
      // Query, key, value, result.
      Operation *end = ops[i + 3];
      Type type = elementOf(end->getResult(0));
      bool copies = type.isF32();
      for (Operation *op = ops[i]; op != end && !copies; op = op->getNextNode())
        copies = isa<aten::ToCopyOp>(op);
      if (copies)
        continue;
      for (Operation *op : ops.slice(i, 3)) {
        OpBuilder b(op);
        Value wide = make<aten::ToCopyOp>(b, op->getLoc(), op->getOperand(0),
                                          Type(b.getF32Type()));
        op->setOperand(0, wide);
        changed.push_back(wide);
      }
      OpBuilder b(end->getNextNode());
      auto back =
          aten::ToCopyOp::create(b, end->getLoc(), end->getResult(0), type);
      end->getResult(0).replaceAllUsesExcept(back.getResult(), back);
    }
  }

  /// transformers calls scaled_dot_product_attention with the bias as a mask:
  /// contiguous, in the type of the query under autocast too.
  void attend(ArrayRef<Operation *> ops) {
    for (size_t i = 0; i + 4 <= ops.size(); i += 4) {
      auto end = cast<aten::ViewOp>(ops[i + 3]);
      Operation *first = ops[i];
      for (Operation *op : ops.slice(i, 3))
        if (op->isBeforeInBlock(first))
          first = op;
      double scale = 1, dropout = 0;
      uint64_t key = uint64_t(-1);
      aten::AddTensorOp sum;
      for (Operation *op = first; op != end; op = op->getNextNode()) {
        if (auto by = dyn_cast<aten::MulScalarOp>(op))
          scale *= numberOf(by.getOther());
        else if (auto drop = dyn_cast<aten::DropoutOp>(op))
          dropout = drop.getP().convertToDouble();
        else if (auto add = dyn_cast<aten::AddTensorOp>(op))
          sum = add;
      }
      if (!sum)
        continue;
      OpBuilder b(end);
      Location loc = end.getLoc();
      Value q = ops[i]->getOperand(0), k = ops[i + 1]->getOperand(0),
            v = ops[i + 2]->getOperand(0), bias = sum.getOther();
      if (auto copied = bias.getDefiningOp<aten::ToCopyOp>())
        bias = copied.getSelf();
      bias = make<aten::CloneOp>(b, loc, bias);
      if (elementOf(bias) != elementOf(q))
        bias = make<aten::ToCopyOp>(b, loc, bias, elementOf(q));
      auto attention = aten::ScaledDotProductAttentionOp::create(
          b, loc, q, k, v, bias, /*is_causal=*/false, b.getF64FloatAttr(scale),
          uint64_t(0), b.getF64FloatAttr(0), /*by_parts=*/UnitAttr(),
          b.getF64FloatAttr(dropout), key);
      attention->setAttr(aten::trainedMaskAttr, b.getUnitAttr());
      end.getResult().replaceAllUsesWith(attention.getResult());
      changed.push_back(attention.getResult());
      for (Operation *op = end, *before; op; op = before) {
        before = op == first ? nullptr : op->getPrevNode();
        if (op->use_empty())
          op->erase();
      }
    }
  }

  /// Results in the types that the graph knows: the loss in fp32.
  void keepResults(func::FuncOp function) {
    Operation *end = function.getBody().front().getTerminator();
    for (auto [operand, type] :
         llvm::zip(end->getOpOperands(), function.getResultTypes())) {
      if (operand.get().getType() == type)
        continue;
      OpBuilder b(end);
      operand.set(
          make<aten::ToCopyOp>(b, end->getLoc(), operand.get(),
                               cast<RankedTensorType>(type).getElementType()));
    }
  }

  ModuleOp module;
  sharding::GraphOp graph;
  bool cpu;
  SmallVector<Value> changed;
  DenseMap<Value, Value> truth;
};

} // namespace

LogicalResult eager::encodersToEagerForm(ModuleOp module, bool cpu) {
  Encoders encoders(module, cpu);
  for (auto function : llvm::to_vector(module.getOps<func::FuncOp>()))
    if (!function.isExternal() && failed(encoders.run(function)))
      return failure();
  return success();
}
