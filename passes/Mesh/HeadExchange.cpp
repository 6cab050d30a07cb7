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
             aten::FlashAttentionBackwardOp, aten::CudnnAttentionOp,
             aten::CudnnAttentionBackwardOp, aten::EfficientAttentionOp,
             aten::EfficientAttentionBackwardOp, aten::WindowAttentionOp,
             aten::WindowAttentionBackwardOp>(op);
}

namespace {

/// Of [batch, heads, tokens, ...], as most kernels have them.
constexpr uint64_t heads = 1, tokens = 2;
/// Of [batch, tokens, heads, features], as they lie in memory.
constexpr uint64_t lyingTokens = 1, lyingHeads = 2;

bool isWindow(Operation *op) {
  return isa<aten::WindowAttentionOp, aten::WindowAttentionBackwardOp>(op);
}
bool hasFeatures(Value value) { return typeOf(value).getRank() == 4; }

/// The operands that have a meaning of their own.
struct Operands {
  Value query, key, mask;
};

Operands operandsOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, Operands>(op)
      .Case<aten::ScaledDotProductAttentionOp, aten::FlashAttentionForCpuOp,
            aten::FlashAttentionForCpuBackwardOp, aten::CudnnAttentionOp,
            aten::CudnnAttentionBackwardOp, aten::EfficientAttentionOp,
            aten::EfficientAttentionBackwardOp>([](auto op) {
        return Operands{op.getQuery(), op.getKey(), op.getMask()};
      })
      .Case<aten::FlashAttentionOp, aten::FlashAttentionBackwardOp,
            aten::WindowAttentionOp, aten::WindowAttentionBackwardOp>(
          [](auto op) { return Operands{op.getQuery(), op.getKey(), Value()}; })
      .Default([](Operation *) -> Operands {
        llvm_unreachable("isAttention names the same operations");
      });
}

class HeadExchange {
public:
  HeadExchange(Operation *op, sharding::MeshOp mesh, StringRef axis)
      : op(op), b(op), loc(op->getLoc()), axis(axis),
        ranks(mesh.axisSize(axis)), lies(isWindow(op)) {
    const Operands of = operandsOf(op);
    mask = of.mask;
    queryHeads = headsOf(of.query);
    keyHeads = headsOf(of.key);
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

  int64_t headsOf(Value value) const {
    return typeOf(value).getDimSize(hasFeatures(value) && lies ? lyingHeads
                                                               : heads);
  }
  bool isRepeated(Value value) const {
    return sentKeyHeads != keyHeads &&
           headsOf(value) == keyHeads; // then not the queries'
  }
  int64_t sentHeads(Value value) const {
    return isRepeated(value) ? sentKeyHeads : headsOf(value);
  }
  RankedTensorType ofHeads(RankedTensorType type, int64_t sent) const {
    const bool lying = type.getRank() == 4 && lies;
    SmallVector<int64_t> shape(type.getShape());
    shape[lying ? lyingHeads : heads] = sent / ranks;
    shape[lying ? lyingTokens : tokens] *= ranks;
    return type.clone(shape);
  }

  /// [batch, heads, tokens, features] lies as [batch, tokens, heads, features]
  /// in memory, and is exchanged so.
  Value swap(Value value) {
    return lies ? value : make<aten::TransposeIntOp>(value, heads, tokens);
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
    if (!hasFeatures(value))
      return exchange(value, heads, tokens);
    Value lying = swap(value);
    if (isRepeated(value))
      lying = repeat(lying);
    return swap(exchange(lying, lyingHeads, lyingTokens));
  }

  /// All heads of the rank's tokens, as `like`.
  Value toTokens(Value value, Value like) {
    if (!hasFeatures(value))
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
  bool lies; // the kernel has values as they lie in memory
  Value mask;
  int64_t queryHeads, keyHeads;
  int64_t sentKeyHeads; // repeated so often that the ranks divide them
};

/// What the ranks cannot divide by heads: each has all tokens, and keeps its
/// own of what comes out.
class WholeTokens {
public:
  WholeTokens(Operation *op, sharding::MeshOp mesh, StringRef axis)
      : op(op), b(op), axis(axis), ranks(mesh.axisSize(axis)),
        lies(isWindow(op)) {}

  SmallVector<Value> run() {
    const Value mask = operandsOf(op).mask;
    for (OpOperand &operand : op->getOpOperands())
      if (operand.get() != mask)
        operand.set(sharding::AllGatherOp::create(
            b, op->getLoc(), scaled(operand.get()), operand.get(),
            tokensOf(operand.get()), axis, 1, false));
    b.setInsertionPointAfter(op);
    SmallVector<Value> results;
    for (Value result : op->getResults()) {
      const RankedTensorType part = typeOf(result);
      result.setType(scaled(result));
      auto own = sharding::SliceOp::create(b, op->getLoc(), part, result,
                                           tokensOf(result), axis, 1, false);
      result.replaceAllUsesExcept(own, own);
      results.push_back(own);
    }
    return results;
  }

private:
  uint64_t tokensOf(Value value) const {
    return hasFeatures(value) && lies ? lyingTokens : tokens;
  }
  RankedTensorType scaled(Value value) const {
    SmallVector<int64_t> shape(typeOf(value).getShape());
    shape[tokensOf(value)] *= ranks;
    return typeOf(value).clone(shape);
  }

  Operation *op;
  OpBuilder b;
  StringRef axis;
  int64_t ranks;
  bool lies;
};

} // namespace

SmallVector<Value> mesh::attendByHeads(Operation *op, sharding::MeshOp mesh,
                                       StringRef axis) {
  const int64_t queryHeads = typeOf(operandsOf(op).query)
                                 .getDimSize(isWindow(op) ? lyingHeads : heads);
  if (queryHeads % mesh.axisSize(axis) != 0)
    return WholeTokens(op, mesh, axis).run();
  return HeadExchange(op, mesh, axis).run();
}
