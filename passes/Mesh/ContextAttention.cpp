//===- ContextAttention.cpp - Attention on shards of tokens ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Mesh/ContextAttention.h"

#include "passes/Mesh/ContextBlocks.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel;
using namespace accel::mesh;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

bool mesh::isContextAttention(Operation *op) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<aten::FlashAttentionForCpuOp, aten::FlashAttentionForCpuBackwardOp,
            aten::CudnnAttentionOp, aten::CudnnAttentionBackwardOp>(
          [](auto op) { return op.getIsCausal() && !op.getMask(); })
      .Case<aten::FlashAttentionOp, aten::FlashAttentionBackwardOp>(
          [](auto op) { return op.getIsCausal(); })
      .Default(false);
}

namespace {

/// The queries, keys and values of the second block with a rank: this rank's
/// earlier queries and that rank's earlier keys where it stands before this
/// one, else the later ones of both.
struct SecondBlock {
  Value isBefore, query, key, value;

  SecondBlock(Blocks &in, int64_t shift, const Halves &q, const Halves &k,
              const Halves &v)
      : isBefore(in.isBefore(shift)),
        query(in.choose(isBefore, q.head, q.tail)),
        key(in.choose(isBefore, k.head, k.tail)),
        value(in.choose(isBefore, v.head, v.tail)) {}
};

template <typename OpT> class Forward {
public:
  Forward(OpT op, sharding::MeshOp mesh, StringRef axis)
      : op(op), in(op, mesh, axis) {
    in.makeCoordinate();
  }

  SmallVector<Value> run() {
    const Attended own =
        in.attend(op, op.getQuery(), op.getKey(), op.getValue(),
                  /*causal=*/true);
    const Halves outputs = in.halves(in.inF32(own.output)),
                 sums = in.halves(own.logsumexp);
    Attended head = {outputs.head, sums.head}, tail = {outputs.tail, sums.tail};
    const Halves query = in.halves(op.getQuery());
    constexpr double least = -1e30; // of which nothing is left beside a score
    Value none = in.number(least, in.b.getF32Type());
    for (int64_t shift = 1; shift < in.ranks; ++shift) {
      const Halves key = in.halves(in.from(op.getKey(), shift)),
                   value = in.halves(in.from(op.getValue(), shift));
      joinTo(tail, in.attend(op, query.tail, key.head, value.head, false));
      const SecondBlock second(in, shift, query, key, value);
      const Attended other =
          in.attend(op, second.query, second.key, second.value, false);
      joinTo(head,
             {other.output, in.choose(second.isBefore, other.logsumexp, none)});
      joinTo(tail,
             {other.output, in.choose(second.isBefore, none, other.logsumexp)});
    }
    const Type element = typeOf(op.getOutput()).getElementType();
    Value output =
        in.join({in.cast(head.output, element), in.cast(tail.output, element)});
    Value logsumexp = in.make<aten::CatOp>(
        ValueRange{head.logsumexp, tail.logsumexp}, tokens);
    // The backward reads these; to make them again is to attend again.
    Blocks::markJoined(output.getDefiningOp()->getOperand(0).getDefiningOp());
    Blocks::markJoined(logsumexp.getDefiningOp());
    op->replaceAllUsesWith(ValueRange{output, logsumexp});
    op->erase();
    return {output, logsumexp};
  }

private:
  /// Of the sum e^l + e^l' the other has the share sigmoid(l' - l), and its
  /// logarithm is l - log sigmoid(l - l'), which does not overflow.
  void joinTo(Attended &to, const Attended &other) {
    Value difference =
        in.make<aten::SubTensorOp>(other.logsumexp, to.logsumexp);
    Value share = in.besideFeatures(in.make<aten::SigmoidOp>(difference));
    Value moved = in.make<aten::MulTensorOp>(
        in.make<aten::SubTensorOp>(in.inF32(other.output), to.output), share);
    to.output = in.add(to.output, moved);
    Value ownShare =
        in.make<aten::LogSigmoidOp>(in.make<aten::NegOp>(difference));
    to.logsumexp = in.make<aten::SubTensorOp>(to.logsumexp, ownShare);
  }

  OpT op;
  Blocks in;
};

template <typename OpT> class Backward {
public:
  Backward(OpT op, sharding::MeshOp mesh, StringRef axis)
      : op(op), in(op, mesh, axis) {
    in.makeCoordinate();
  }

  SmallVector<Value> run() {
    const AttendedQueries own = {op.getGradOut(), op.getQuery(), op.getOut(),
                                 op.getLogsumexp()};
    AttendedGradients sum =
        in.attend(op, own, op.getKey(), op.getValue(), /*causal=*/true);
    const Halves gradient = in.halves(own.gradient),
                 query = in.halves(own.query), output = in.halves(own.output),
                 sums = in.halves(own.logsumexp);
    const AttendedQueries tail = {gradient.tail, query.tail, output.tail,
                                  sums.tail};
    Halves ofQuery = in.halves(sum.query);
    Value none = in.number(0, typeOf(op.getGradQuery()).getElementType());
    for (int64_t shift = 1; shift < in.ranks; ++shift) {
      const Halves key = in.halves(in.from(op.getKey(), shift)),
                   value = in.halves(in.from(op.getValue(), shift));
      const AttendedGradients first =
          in.attend(op, tail, key.head, value.head, false);
      const SecondBlock second(in, shift, query, key, value);
      auto choose = [&](const Halves &of) {
        return in.choose(second.isBefore, of.head, of.tail);
      };
      const AttendedGradients other =
          in.attend(op,
                    AttendedQueries{choose(gradient), second.query,
                                    choose(output), choose(sums)},
                    second.key, second.value, false);
      auto ifBefore = [&](Value value) {
        return in.choose(second.isBefore, value, none);
      };
      auto ifBehind = [&](Value value) {
        return in.choose(second.isBefore, none, value);
      };
      ofQuery.head = in.add(ofQuery.head, ifBefore(other.query));
      ofQuery.tail = in.add(ofQuery.tail, first.query);
      ofQuery.tail = in.add(ofQuery.tail, ifBehind(other.query));
      auto giveBack = [&](Value mine, Value ofFirst, Value ofOther) {
        Value theirs =
            in.join({in.add(ofFirst, ifBefore(ofOther)), ifBehind(ofOther)});
        return in.add(mine, in.back(theirs, shift));
      };
      sum.key = giveBack(sum.key, first.key, other.key);
      sum.value = giveBack(sum.value, first.value, other.value);
    }
    sum.query = in.join(ofQuery);
    op->replaceAllUsesWith(ValueRange{sum.query, sum.key, sum.value});
    op->erase();
    return {sum.query, sum.key, sum.value};
  }

private:
  OpT op;
  Blocks in;
};

} // namespace

SmallVector<Value> mesh::attendInContext(Operation *op, sharding::MeshOp mesh,
                                         StringRef axis) {
  return llvm::TypeSwitch<Operation *, SmallVector<Value>>(op)
      .Case<aten::FlashAttentionForCpuOp, aten::FlashAttentionOp,
            aten::CudnnAttentionOp>(
          [&](auto op) { return Forward(op, mesh, axis).run(); })
      .Case<aten::FlashAttentionForCpuBackwardOp,
            aten::FlashAttentionBackwardOp, aten::CudnnAttentionBackwardOp>(
          [&](auto op) { return Backward(op, mesh, axis).run(); })
      .Default([](Operation *) -> SmallVector<Value> {
        llvm_unreachable("isContextAttention names the same operations");
      });
}
