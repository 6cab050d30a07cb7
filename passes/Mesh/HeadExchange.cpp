//===- HeadExchange.cpp - Attention with heads for tokens -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Mesh/HeadExchange.h"

#include "dialects/Aten/Aten.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

bool mesh::isAttention(Operation *op) {
  return isa<aten::ScaledDotProductAttentionOp, aten::FlashAttentionForCpuOp,
             aten::FlashAttentionForCpuBackwardOp, aten::FlashAttentionOp,
             aten::FlashAttentionBackwardOp, aten::EfficientAttentionOp,
             aten::EfficientAttentionBackwardOp>(op);
}

namespace {

constexpr uint64_t heads = 1, tokens = 2; // of [batch, heads, tokens, ...]

/// The operands that have a meaning of their own.
struct Operands {
  Value query, key, mask;
};

Operands operandsOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, Operands>(op)
      .Case<aten::ScaledDotProductAttentionOp, aten::FlashAttentionForCpuOp,
            aten::FlashAttentionForCpuBackwardOp, aten::EfficientAttentionOp,
            aten::EfficientAttentionBackwardOp>([](auto op) {
        return Operands{op.getQuery(), op.getKey(), op.getMask()};
      })
      .Case<aten::FlashAttentionOp, aten::FlashAttentionBackwardOp>(
          [](auto op) { return Operands{op.getQuery(), op.getKey(), Value()}; })
      .Default([](Operation *) -> Operands {
        llvm_unreachable("isAttention names the same operations");
      });
}

class HeadExchange {
public:
  HeadExchange(Operation *op, sharding::MeshOp mesh, StringRef axis)
      : op(op), b(op), loc(op->getLoc()), axis(axis),
        ranks(mesh.axisSize(axis)) {
    const Operands of = operandsOf(op);
    mask = of.mask;
    queryHeads = typeOf(of.query).getDimSize(heads);
    keyHeads = typeOf(of.key).getDimSize(heads);
    sentKeyHeads = keyHeads;
    while (sentKeyHeads % ranks != 0 || queryHeads % sentKeyHeads != 0)
      sentKeyHeads += keyHeads; // ends at the query heads at last
  }

  SmallVector<Value> run() {
    OperationState state(loc, op->getName());
    state.addAttributes(op->getAttrs());
    for (Value operand : op->getOperands())
      state.operands.push_back(operand == mask ? maskOfHeads()
                                               : toHeads(operand));
    for (Value result : op->getResults())
      state.types.push_back(ofHeads(typeOf(result), sentHeads(result)));
    Operation *made = b.create(state);
    SmallVector<Value> results;
    for (auto [old, byHeads] : llvm::zip(op->getResults(), made->getResults()))
      results.push_back(toTokens(byHeads, old));
    op->replaceAllUsesWith(results);
    op->erase();
    return results;
  }

private:
  template <typename OpT, typename... Args> Value make(Args &&...args) {
    return OpT::create(b, loc, std::forward<Args>(args)...)->getResult(0);
  }

  bool isRepeated(Value value) const {
    return sentKeyHeads != keyHeads &&
           typeOf(value).getDimSize(heads) == keyHeads; // then not the queries'
  }
  int64_t sentHeads(Value value) const {
    return isRepeated(value) ? sentKeyHeads : typeOf(value).getDimSize(heads);
  }
  RankedTensorType ofHeads(RankedTensorType type, int64_t sent) const {
    SmallVector<int64_t> shape(type.getShape());
    shape[heads] = sent / ranks;
    shape[tokens] *= ranks;
    return type.clone(shape);
  }

  /// [batch, heads, tokens, features] lies as [batch, tokens, heads, features]
  /// in memory, and is exchanged so.
  static constexpr uint64_t lyingTokens = 1, lyingHeads = 2;
  static bool isSwapped(Value value) { return typeOf(value).getRank() == 4; }
  Value swap(Value value) {
    return make<aten::TransposeIntOp>(value, heads, tokens);
  }
  Value exchange(Value value, uint64_t split, uint64_t concat) {
    SmallVector<int64_t> shape(typeOf(value).getShape());
    shape[split] /= ranks;
    shape[concat] *= ranks;
    return make<sharding::AllToAllOp>(typeOf(value).clone(shape), value, split,
                                      concat, axis);
  }

  /// The rank's heads of all tokens.
  Value toHeads(Value value) {
    if (!isSwapped(value))
      return exchange(value, heads, tokens);
    Value lying = swap(value);
    if (isRepeated(value))
      lying = repeat(lying);
    return swap(exchange(lying, lyingHeads, lyingTokens));
  }

  /// All heads of the rank's tokens, as `like`.
  Value toTokens(Value value, Value like) {
    if (!isSwapped(value))
      return exchange(value, tokens, heads);
    Value lying = exchange(swap(value), lyingTokens, lyingHeads);
    if (isRepeated(like))
      lying = addUp(lying);
    return swap(lying);
  }

  /// Each head [batch, tokens, heads, features] as often as it is sent.
  Value repeat(Value lying) {
    SmallVector<int64_t> shape(typeOf(lying).getShape());
    shape.insert(shape.begin() + lyingHeads + 1, sentKeyHeads / keyHeads);
    Value many = make<aten::ExpandOp>(
        make<aten::UnsqueezeOp>(lying, lyingHeads + 1), ArrayRef(shape));
    shape.erase(shape.begin() + lyingHeads + 1);
    shape[lyingHeads] = sentKeyHeads;
    return make<aten::ViewOp>(make<aten::CloneOp>(many), ArrayRef(shape));
  }
  Value addUp(Value lying) {
    SmallVector<int64_t> shape(typeOf(lying).getShape());
    shape[lyingHeads] = keyHeads;
    shape.insert(shape.begin() + lyingHeads + 1, sentKeyHeads / keyHeads);
    return make<aten::SumDimOp>(make<aten::ViewOp>(lying, ArrayRef(shape)),
                                ArrayRef<int64_t>{int64_t(lyingHeads) + 1},
                                false);
  }

  /// A mask has all tokens; where heads have their own, those of the rank.
  Value maskOfHeads() {
    SmallVector<int64_t> shape(typeOf(mask).getShape());
    if (shape[heads] == 1)
      return mask;
    shape[heads] /= ranks;
    return make<sharding::SliceOp>(typeOf(mask).clone(shape), mask, heads, axis,
                                   uint64_t(1), false);
  }

  Operation *op;
  OpBuilder b;
  Location loc;
  StringRef axis;
  int64_t ranks;
  Value mask;
  int64_t queryHeads, keyHeads;
  int64_t sentKeyHeads; // repeated so often that the ranks divide them
};

/// What the ranks cannot divide by heads: each has all tokens, and keeps its
/// own of what comes out.
class WholeTokens {
public:
  WholeTokens(Operation *op, sharding::MeshOp mesh, StringRef axis)
      : op(op), b(op), axis(axis), ranks(mesh.axisSize(axis)) {}

  SmallVector<Value> run() {
    const Value mask = operandsOf(op).mask;
    for (OpOperand &operand : op->getOpOperands())
      if (operand.get() != mask)
        operand.set(sharding::AllGatherOp::create(
            b, op->getLoc(), scaled(operand.get(), ranks, 1), operand.get(),
            tokens, axis, 1, false));
    b.setInsertionPointAfter(op);
    SmallVector<Value> results;
    for (Value result : op->getResults()) {
      const RankedTensorType part = typeOf(result);
      result.setType(scaled(result, ranks, 1));
      auto own = sharding::SliceOp::create(b, op->getLoc(), part, result,
                                           tokens, axis, 1, false);
      result.replaceAllUsesExcept(own, own);
      results.push_back(own);
    }
    return results;
  }

private:
  static RankedTensorType scaled(Value value, int64_t times, int64_t parts) {
    SmallVector<int64_t> shape(typeOf(value).getShape());
    shape[tokens] = shape[tokens] * times / parts;
    return typeOf(value).clone(shape);
  }

  Operation *op;
  OpBuilder b;
  StringRef axis;
  int64_t ranks;
};

} // namespace

SmallVector<Value> mesh::attendByHeads(Operation *op, sharding::MeshOp mesh,
                                       StringRef axis) {
  if (typeOf(operandsOf(op).query).getDimSize(heads) % mesh.axisSize(axis) != 0)
    return WholeTokens(op, mesh, axis).run();
  return HeadExchange(op, mesh, axis).run();
}
