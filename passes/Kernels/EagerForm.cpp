//===- EagerForm.cpp - Functions as transformers' modules compute ---------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/EagerForm.h"

#include "dialects/Aten/Eager.h"
#include "dialects/Aten/Types.h"
#include "dialects/Sharding/Sharding.h"
#include "passes/Kernels/EagerEncoders.h"
#include "passes/Kernels/EagerMasks.h"
#include "passes/Kernels/SelectAttention.h"

#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace accel;
using accel::aten::tensorType;
using accel::eager::inferUsers;
using accel::eager::laterKeys;
using accel::eager::make;
using accel::eager::updateType;

LogicalResult eager::inferUsers(func::FuncOp function, ArrayRef<Value> values) {
  llvm::SmallPtrSet<Operation *, 16> stale;
  for (Value value : values)
    stale.insert(value.getUsers().begin(), value.getUsers().end());
  if (stale.empty())
    return success();
  for (Operation &each : function.getBody().front()) {
    Operation *op = &each;
    auto infer = dyn_cast<InferTypeOpInterface>(op);
    if (!infer || !stale.contains(op))
      continue;
    SmallVector<Type> types;
    if (failed(infer.inferReturnTypes(
            op->getContext(), op->getLoc(), op->getOperands(),
            op->getAttrDictionary(), op->getPropertiesStorage(),
            op->getRegions(), types)))
      return op->emitOpError("cannot be brought into transformers' form");
    for (auto [result, type] : llvm::zip(op->getResults(), types)) {
      if (result.getType() == type)
        continue;
      result.setType(type);
      stale.insert(result.getUsers().begin(), result.getUsers().end());
    }
  }
  return success();
}

void eager::updateType(func::FuncOp function) {
  Block &body = function.getBody().front();
  function.setFunctionType(
      FunctionType::get(function.getContext(), body.getArgumentTypes(),
                        body.getTerminator()->getOperandTypes()));
}

Value eager::laterKeys(OpBuilder &b, Location loc, int64_t size) {
  auto count = [&] {
    return make<aten::ArangeOp>(b, loc, uint64_t(0), uint64_t(size),
                                uint64_t(1), Type(b.getI32Type()));
  };
  Value behind = make<aten::SubTensorOp>(
      b, loc, make<aten::UnsqueezeOp>(b, loc, count(), uint64_t(1)), count());
  return make<aten::LtScalarOp>(b, loc, behind,
                                TypedAttr(b.getI64IntegerAttr(0)));
}

namespace {

using Attention = aten::ScaledDotProductAttentionOp;

/// `joint[:, :, :, [i]]`, and `broadcast_to` with `flatten` after it; the value
/// that has another type than before, or none.
Value indexByList(aten::SliceTensorOp slice) {
  auto times = slice->getAttrOfType<IntegerAttr>(aten::byListAttr);
  OpBuilder b(slice);
  Location loc = slice.getLoc();
  Value positions = make<aten::ArangeOp>(b, loc, uint64_t(slice.getStart()),
                                         uint64_t(slice.getEnd()), uint64_t(1),
                                         Type(b.getI64Type()));
  Value taken = make<aten::IndexTensorOp>(
      b, loc, slice.getSelf(), ValueRange(positions),
      ArrayRef<int64_t>{static_cast<int64_t>(slice.getDim())});
  auto view = slice->hasOneUse()
                  ? dyn_cast<aten::ViewOp>(*slice->getUsers().begin())
                  : aten::ViewOp();
  if (times.getInt() > 1 && view) {
    SmallVector<int64_t> shape(tensorType(taken).getShape());
    shape[slice.getDim()] = times.getInt();
    taken =
        make<aten::CloneOp>(b, loc, make<aten::ExpandOp>(b, loc, taken, shape));
    shape = SmallVector<int64_t>(tensorType(view.getResult()).getShape());
    shape[2] *= times.getInt();
    Value repeated = make<aten::ViewOp>(b, loc, taken, shape);
    view.getResult().replaceAllUsesWith(repeated);
    view.erase();
    slice.erase();
    return repeated;
  }
  slice.getResult().replaceAllUsesWith(taken);
  slice.erase();
  return {};
}

Value repeatForSamples(aten::UnsqueezeOp op) {
  OpBuilder b(op->getNextNode());
  SmallVector<int64_t> shape(tensorType(op.getResult()).getShape());
  shape[0] = op->getAttrOfType<IntegerAttr>(aten::perSampleAttr).getInt();
  auto expanded = aten::ExpandOp::create(b, op.getLoc(), op.getResult(), shape);
  Value whole = make<aten::CloneOp>(b, op.getLoc(), expanded->getResult(0));
  op.getResult().replaceAllUsesExcept(whole, expanded);
  return whole;
}

/// Moves `last`, and what it reads, before the first operation of its block
/// that it does not read: autograd runs backward what ran forward.
void moveAhead(Operation *last) {
  llvm::SmallPtrSet<Operation *, 32> read{last};
  SmallVector<Operation *> open{last};
  while (!open.empty())
    for (Value operand : open.pop_back_val()->getOperands())
      if (Operation *op = operand.getDefiningOp(); op && read.insert(op).second)
        open.push_back(op);
  Operation *first = nullptr; // that is not read
  SmallVector<Operation *> moved;
  for (Operation &op : *last->getBlock())
    if (!read.contains(&op))
      first = first ? first : &op;
    else if (first)
      moved.push_back(&op);
  for (Operation *op : moved)
    op->moveBefore(first);
}

class Masks {
public:
  explicit Masks(ModuleOp module)
      : module(module), graph(sharding::findOnly<sharding::GraphOp>(module)) {}

  void run(func::FuncOp function) {
    SmallVector<Attention> ops;
    function.walk([&](Attention op) {
      if (op->hasAttr(aten::maskedAttr))
        ops.push_back(op);
    });
    for (Attention op : ops) {
      auto how = op->getAttrOfType<StringAttr>(aten::maskedAttr).getValue();
      if (how == aten::maskAdded)
        add(function, op);
      else if (how == aten::maskFilled)
        fill(function, op);
    }
  }

private:
  SmallVector<sharding::CallOp> callsOf(func::FuncOp function) {
    SmallVector<sharding::CallOp> calls;
    if (graph)
      for (auto call : graph.getBody().getOps<sharding::CallOp>())
        if (call.getCallee() == function.getSymName())
          calls.push_back(call);
    return calls;
  }

  /// The layers' mask becomes [B, H, S, S], whose maker fills it.
  void add(func::FuncOp function, Attention op) {
    Value source = op.getMask();
    auto cast = source ? source.getDefiningOp<aten::ToCopyOp>() : nullptr;
    if (cast) // autocast's, of each layer
      source = cast.getSelf();
    auto mask = dyn_cast_or_null<BlockArgument>(source);
    SmallVector<sharding::CallOp> calls = callsOf(function);
    if (!mask || calls.empty())
      return;
    auto query = tensorType(op.getQuery());
    for (sharding::CallOp call : calls) {
      Value given = call.getOperands()[mask.getArgNumber()];
      if (!finish(given, query))
        return;
      mask.setType(llvm::cast<RankedTensorType>(given.getType()));
    }
    if (cast)
      cast.getResult().setType(
          RankedTensorType::get(tensorType(mask).getShape(),
                                tensorType(cast.getResult()).getElementType()));
    updateType(function);
    op.setIsCausal(false);
  }

  bool finish(Value given, RankedTensorType query) {
    auto maker = given.getDefiningOp<sharding::CallOp>();
    if (!maker)
      return false;
    if (llvm::is_contained(finished, given))
      return true;
    auto function = module.lookupSymbol<func::FuncOp>(maker.getCallee());
    Operation *end = function.getBody().front().getTerminator();
    const unsigned result = cast<OpResult>(given).getResultNumber();
    OpBuilder b(end);
    Location loc = end->getLoc();
    Value bias = end->getOperand(result);
    auto type = tensorType(bias);
    SmallVector<int64_t> shape(type.getShape());
    shape[0] = query.getDimSize(0);
    Value whole = make<aten::MaskedFillScalarOp>(
        b, loc, Value(make<aten::ExpandOp>(b, loc, bias, shape)),
        laterKeys(b, loc, query.getDimSize(2)),
        TypedAttr(b.getF64FloatAttr(leastOf(type.getElementType()))));
    end->setOperand(result, whole);
    updateType(function);
    given.setType(whole.getType());
    finished.push_back(given);
    return true;
  }

  /// Layers take truth values, [B, 1, S, S], after their other inputs.
  void fill(func::FuncOp function, Attention op) {
    SmallVector<sharding::CallOp> calls = callsOf(function);
    if (calls.empty())
      return;
    const unsigned at = calls.front().getNumOperands();
    auto query = tensorType(op.getQuery());
    const int64_t size = query.getDimSize(2);
    auto type = RankedTensorType::get({query.getDimSize(0), 1, size, size},
                                      IntegerType::get(op.getContext(), 1));
    if (failed(function.insertArgument(at, type, {}, op.getLoc())))
      return;
    for (sharding::CallOp call : calls)
      call.getOperandsMutable().append(later(call, type));
    OpBuilder b(op);
    op.getResult().replaceAllUsesWith(
        attentionByParts(b, op, function.getArgument(at)));
    op.erase();
  }

  /// Made before the first layer, once for all.
  Value later(sharding::CallOp call, RankedTensorType type) {
    if (mask)
      return mask;
    OpBuilder b(module.getContext());
    b.setInsertionPointToEnd(module.getBody());
    Type input = call.getOperands().front().getType();
    Location loc = call.getLoc();
    auto maker = func::FuncOp::create(b, loc, "CausalMask",
                                      b.getFunctionType({input}, {Type(type)}));
    maker.setPrivate();
    b.setInsertionPointToStart(maker.addEntryBlock());
    const int64_t size = type.getDimSize(2);
    Value seen = make<aten::ViewOp>(b, loc, laterKeys(b, loc, size),
                                    ArrayRef<int64_t>{1, 1, size, size});
    seen = make<aten::CloneOp>(
        b, loc, make<aten::ExpandOp>(b, loc, seen, type.getShape()));
    func::ReturnOp::create(b, loc, ValueRange(seen));
    b.setInsertionPoint(call);
    // FQN of the module that owns the layer's ModuleList.
    StringRef path = call.getPath().rsplit('.').first.rsplit('.').first;
    mask = sharding::CallOp::create(b, loc, TypeRange(Type(type)),
                                    maker.getSymName(),
                                    ValueRange(call.getOperands().front()),
                                    path, sharding::CheckpointAttr())
               .getResult(0);
    return mask;
  }

  ModuleOp module;
  sharding::GraphOp graph;
  SmallVector<Value> finished;
  Value mask;
};

void eraseUnused(func::FuncOp function) {
  SmallVector<Operation *> ops;
  for (Operation &op : function.getBody().front().without_terminator())
    ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops))
    if (op->use_empty())
      op->erase();
}

/// A mixture's load balancing loss: here each layer returns its experts' counts
/// and probabilities; transformers returns the router's logits and computes
/// softmax and choices of all layers' together.
class Balancing {
public:
  explicit Balancing(ModuleOp module)
      : module(module), graph(sharding::findOnly<sharding::GraphOp>(module)) {}

  LogicalResult run() {
    if (!graph)
      return success();
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isExternal())
        find(function);
    if (layers.empty())
      return success();
    for (auto call :
         llvm::to_vector(graph.getBody().getOps<sharding::CallOp>()))
      if (auto it = layers.find(call.getCallee()); it != layers.end())
        if (failed(returnLogits(call, it->second)))
          return failure();
    for (auto &entry : layers)
      returnLogits(module.lookupSymbol<func::FuncOp>(entry.getKey()),
                   entry.second);
    return rewriteHead();
  }

private:
  /// What a layer returns for the loss.
  struct Layer {
    unsigned counts, probabilities; // results
    Value logits;
    uint64_t chosen, experts;
  };

  static Value throughCopies(Value value) {
    while (auto *op = value.getDefiningOp())
      if (isa<aten::ToCopyOp, aten::ViewOp, aten::TypeAsOp>(op))
        value = op->getOperand(0);
      else
        break;
    return value;
  }

  void find(func::FuncOp function) {
    Operation *end = function.getBody().front().getTerminator();
    Layer layer;
    aten::SoftmaxOp softmax;
    for (OpOperand &operand : end->getOpOperands())
      if (auto histc = operand.get().getDefiningOp<aten::HistcOp>())
        if (auto topk =
                throughCopies(histc.getSelf()).getDefiningOp<aten::TopkOp>()) {
          softmax = topk.getSelf().getDefiningOp<aten::SoftmaxOp>();
          layer.counts = operand.getOperandNumber();
          layer.chosen = topk.getK();
          layer.experts = histc.getBins();
        }
    if (!softmax)
      return;
    for (OpOperand &operand : end->getOpOperands())
      if (auto sum = operand.get().getDefiningOp<aten::SumDimOp>();
          sum && throughCopies(sum.getSelf()) == softmax.getResult()) {
        layer.probabilities = operand.getOperandNumber();
        layer.logits = softmax.getSelf();
        layers[function.getSymName()] = layer;
      }
  }

  /// The call returns logits in place of both.
  LogicalResult returnLogits(sharding::CallOp call, const Layer &layer) {
    OpOperand *counts = nullptr, *probabilities = nullptr;
    for (auto [result, use] : {std::pair(layer.counts, &counts),
                               {layer.probabilities, &probabilities}})
      if (call.getResult(result).hasOneUse())
        *use = &*call.getResult(result).use_begin();
    auto head = counts ? dyn_cast<sharding::CallOp>(counts->getOwner())
                       : sharding::CallOp();
    if (!head || !probabilities || probabilities->getOwner() != head ||
        (reader && reader != head))
      return call.emitOpError("has experts whose load no head balances");
    reader = head;
    Part part{
        counts->getOperandNumber(), probabilities->getOperandNumber(), {}};
    SmallVector<Type> types;
    for (unsigned i = 0; i < call.getNumResults(); ++i)
      if (i == layer.counts)
        types.push_back(layer.logits.getType());
      else if (i != layer.probabilities)
        types.push_back(call.getResult(i).getType());
    OpBuilder b(call);
    auto changed = sharding::CallOp::create(
        b, call.getLoc(), types, call.getCallee(), call.getOperands(),
        call.getPath(), call.getCheckpointAttr());
    changed->setDiscardableAttrs(call->getDiscardableAttrDictionary());
    for (unsigned i = 0, next = 0; i < call.getNumResults(); ++i) {
      if (i == layer.probabilities)
        continue;
      Value result = changed.getResult(next++);
      if (i == layer.counts)
        part.logits = result;
      else
        call.getResult(i).replaceAllUsesWith(result);
    }
    parts.push_back(part);
    old.push_back(call);
    info = layer;
    return success();
  }

  void returnLogits(func::FuncOp function, const Layer &layer) {
    Operation *end = function.getBody().front().getTerminator();
    end->setOperand(layer.counts, layer.logits);
    end->eraseOperand(layer.probabilities);
    updateType(function);
    eraseUnused(function);
  }

  LogicalResult rewriteHead() {
    auto function = module.lookupSymbol<func::FuncOp>(reader.getCallee());
    llvm::BitVector dropped(function.getNumArguments());
    llvm::BitVector droppedOperands(reader.getNumOperands());
    Block &body = function.getBody().front();
    OpBuilder b = OpBuilder::atBlockBegin(&body);
    Location loc = function.getLoc();
    SmallVector<Value> logits;
    SmallVector<Value> given(reader.getOperands());
    const unsigned at = reader.getNumOperands();
    for (auto [i, part] : llvm::enumerate(parts)) {
      if (failed(function.insertArgument(at + unsigned(i),
                                         part.logits.getType(), {}, loc)))
        return failure();
      logits.push_back(function.getArgument(at + unsigned(i)));
    }
    dropped.resize(function.getNumArguments());
    Value all = make<aten::CatOp>(b, loc, ValueRange(logits), uint64_t(0));
    Value chances = make<aten::SoftmaxOp>(b, loc, all, uint64_t(1));
    auto topk = aten::TopkOp::create(b, loc, chances, info.chosen, uint64_t(1));
    const int64_t rows = tensorType(chances).getDimSize(0);
    Value ids = make<aten::ViewOp>(
        b, loc, topk->getResult(1),
        ArrayRef<int64_t>{rows * static_cast<int64_t>(info.chosen)});
    Type f32 = b.getF32Type();
    Value counts = make<aten::HistcOp>(
        b, loc, Value(make<aten::ToCopyOp>(b, loc, ids, f32)), info.experts,
        uint64_t(0), info.experts);
    if (tensorType(chances).getElementType() != f32)
      chances = make<aten::ToCopyOp>(b, loc, chances, f32);
    Value probabilities =
        make<aten::SumDimOp>(b, loc, chances, ArrayRef<int64_t>{0}, false);
    sumOf(function.getArgument(parts.front().counts))
        .replaceAllUsesWith(counts);
    sumOf(function.getArgument(parts.front().probabilities))
        .replaceAllUsesWith(probabilities);
    eraseUnused(function);
    SmallVector<Value> operands;
    for (const Part &part : parts)
      for (unsigned i : {part.counts, part.probabilities}) {
        dropped.set(i);
        droppedOperands.set(i);
      }
    for (unsigned i = 0; i < at; ++i)
      if (!droppedOperands.test(i))
        operands.push_back(given[i]);
    for (const Part &part : parts)
      operands.push_back(part.logits);
    reader.getOperandsMutable().assign(operands);
    if (failed(function.eraseArguments(dropped)))
      return failure();
    for (sharding::CallOp call : old)
      call.erase();
    return success();
  }

  /// The sum that `value` is the first term of.
  static Value sumOf(Value value) {
    while (value.hasOneUse())
      if (auto add = dyn_cast<aten::AddTensorOp>(*value.getUsers().begin()))
        value = add.getResult();
      else
        break;
    return value;
  }

  struct Part {
    unsigned counts, probabilities; // operands of the head
    Value logits;
  };
  ModuleOp module;
  sharding::GraphOp graph;
  llvm::StringMap<Layer> layers;
  SmallVector<Part> parts;
  SmallVector<sharding::CallOp> old;
  sharding::CallOp reader;
  Layer info;
};

} // namespace

LogicalResult accel::toEagerForm(ModuleOp module, bool cpu) {
  if (failed(eager::encodersToEagerForm(module, cpu)))
    return failure();
  if (failed(Balancing(module).run()))
    return failure();
  Masks masks(module);
  for (auto function : llvm::to_vector(module.getOps<func::FuncOp>())) {
    SmallVector<aten::SliceTensorOp> slices;
    function.walk([&](aten::SliceTensorOp op) {
      if (op->hasAttr(aten::byListAttr))
        slices.push_back(op);
    });
    SmallVector<aten::UnsqueezeOp> repeated;
    function.walk([&](aten::UnsqueezeOp op) {
      if (op->hasAttr(aten::perSampleAttr))
        repeated.push_back(op);
    });
    SmallVector<Operation *> ahead;
    function.walk([&](Operation *op) {
      if (op->hasAttr(aten::aheadAttr))
        ahead.push_back(op);
    });
    for (Operation *op : ahead)
      moveAhead(op);
    SmallVector<Value> changed;
    for (aten::SliceTensorOp op : slices)
      if (Value value = indexByList(op))
        changed.push_back(value);
    for (aten::UnsqueezeOp op : repeated)
      changed.push_back(repeatForSamples(op));
    if (failed(inferUsers(function, changed)))
      return failure();
    masks.run(function);
  }
  return eager::shareMasks(module);
}
