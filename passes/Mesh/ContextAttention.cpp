//===- ContextAttention.cpp - Attention on shards of tokens ---------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Mesh/ContextAttention.h"

#include "dialects/Aten/Aten.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

bool mesh::isContextAttention(Operation *op) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<aten::FlashAttentionForCpuOp, aten::FlashAttentionForCpuBackwardOp>(
          [](auto op) { return op.getIsCausal() && !op.getMask(); })
      .Case<aten::FlashAttentionOp, aten::FlashAttentionBackwardOp>(
          [](auto op) { return op.getIsCausal(); })
      .Default(false);
}

namespace {

constexpr uint64_t tokens = 2; // of [batch, heads, tokens, ...]

/// The two parts of a rank's tokens; one of them is null where there is none.
struct Halves {
  Value head, tail;
};

/// An output and the log-sum-exp of the scores that it was made of.
struct Attended {
  Value output, logsumexp;
};

/// What is common to the forward and the backward of one attention.
class Blocks {
public:
  Blocks(Operation *op, sharding::MeshOp mesh, StringRef axis)
      : b(op), loc(op->getLoc()), axis(axis), ranks(mesh.axisSize(axis)) {
    coordinate = sharding::CoordinateOp::create(
        b, loc, RankedTensorType::get({}, b.getI64Type()), axis, 1);
  }

  template <typename OpT, typename... Args> Value make(Args &&...args) {
    return OpT::create(b, loc, std::forward<Args>(args)...)->getResult(0);
  }

  Halves halves(Value value) {
    const int64_t size = typeOf(value).getDimSize(tokens);
    auto part = [&](int64_t from, int64_t to) {
      return make<aten::SliceTensorOp>(value, tokens, uint64_t(from),
                                       uint64_t(to), uint64_t(1));
    };
    return {part(0, size / 2), part(size / 2, size)};
  }

  /// In the memory order of the kernels, [batch, tokens, heads, ...].
  Value join(const Halves &halves) {
    Value whole = make<aten::CatOp>(
        ValueRange{swap(halves.head), swap(halves.tail)}, uint64_t(1));
    return swap(whole);
  }

  /// That of the rank `shift` before this one.
  Value from(Value value, int64_t shift) {
    Value lying = swap(value);
    return swap(sharding::PermuteOp::create(b, loc, lying.getType(), lying,
                                            shift, axis));
  }
  /// Back to where `from` took it.
  Value back(Value value, int64_t shift) { return from(value, ranks - shift); }

  /// True where the rank `shift` before this one has the earlier tokens at the
  /// start of the sequence (and the later ones at its end): where the ranks
  /// are not counted around.
  Value isBefore(int64_t shift) {
    return make<aten::GeScalarOp>(coordinate, b.getI64IntegerAttr(shift));
  }

  Value choose(Value condition, Value a, Value other) {
    return make<aten::WhereSelfOp>(condition, a, other);
  }
  Value number(double value, Type element) {
    return make<aten::FullOp>(ArrayRef<int64_t>{}, b.getF64FloatAttr(value),
                              element);
  }
  Value inF32(Value value) { return cast(value, b.getF32Type()); }
  Value cast(Value value, Type element) {
    return typeOf(value).getElementType() == element
               ? value
               : make<aten::ToCopyOp>(value, element);
  }
  Value swap(Value value) {
    return make<aten::TransposeIntOp>(value, uint64_t(1), tokens);
  }
  Value add(Value a, Value other) { return make<aten::AddTensorOp>(a, other); }

  OpBuilder b;
  Location loc;
  StringRef axis;
  int64_t ranks;
  Value coordinate;
};

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
      : op(op), in(op, mesh, axis) {}

  SmallVector<Value> run() {
    const Attended own = attend(op.getQuery(), op.getKey(), op.getValue(),
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
      joinTo(tail, attend(query.tail, key.head, value.head, false));
      const SecondBlock second(in, shift, query, key, value);
      const Attended other =
          attend(second.query, second.key, second.value, false);
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
    markJoined(output.getDefiningOp()->getOperand(0).getDefiningOp());
    markJoined(logsumexp.getDefiningOp());
    op->replaceAllUsesWith(ValueRange{output, logsumexp});
    op->erase();
    return {output, logsumexp};
  }

private:
  Attended attend(Value query, Value key, Value value, bool causal) {
    auto made = [&] {
      if constexpr (requires { op.getMask(); })
        return OpT::create(in.b, in.loc, query, key, value, Value(), causal,
                           op.getScale());
      else
        return OpT::create(in.b, in.loc, query, key, value, causal,
                           op.getScale());
    }();
    return {made.getOutput(), made.getLogsumexp()};
  }

  /// Of the sum e^l + e^l' the other has the share sigmoid(l' - l), and its
  /// logarithm is l - log sigmoid(l - l'), which does not overflow.
  void joinTo(Attended &to, const Attended &other) {
    Value difference =
        in.make<aten::SubTensorOp>(other.logsumexp, to.logsumexp);
    Value share = in.make<aten::UnsqueezeOp>(
        in.make<aten::SigmoidOp>(difference), uint64_t(3));
    Value moved = in.make<aten::MulTensorOp>(
        in.make<aten::SubTensorOp>(in.inF32(other.output), to.output), share);
    to.output = in.add(to.output, moved);
    Value ownShare =
        in.make<aten::LogSigmoidOp>(in.make<aten::NegOp>(difference));
    to.logsumexp = in.make<aten::SubTensorOp>(to.logsumexp, ownShare);
  }

  static void markJoined(Operation *op) {
    op->setAttr(sharding::joinedAttr, UnitAttr::get(op->getContext()));
  }

  OpT op;
  Blocks in;
};

template <typename OpT> class Backward {
public:
  Backward(OpT op, sharding::MeshOp mesh, StringRef axis)
      : op(op), in(op, mesh, axis) {}

  SmallVector<Value> run() {
    const Of own = {op.getGradOut(), op.getQuery(), op.getOut(),
                    op.getLogsumexp()};
    Gradients sum = attend(own, op.getKey(), op.getValue(), /*causal=*/true);
    const Halves gradient = in.halves(own.gradient),
                 query = in.halves(own.query), output = in.halves(own.output),
                 sums = in.halves(own.logsumexp);
    const Of tail = {gradient.tail, query.tail, output.tail, sums.tail};
    Halves ofQuery = in.halves(sum.query);
    Value none = in.number(0, typeOf(op.getGradQuery()).getElementType());
    for (int64_t shift = 1; shift < in.ranks; ++shift) {
      const Halves key = in.halves(in.from(op.getKey(), shift)),
                   value = in.halves(in.from(op.getValue(), shift));
      const Gradients first = attend(tail, key.head, value.head, false);
      const SecondBlock second(in, shift, query, key, value);
      auto choose = [&](const Halves &of) {
        return in.choose(second.isBefore, of.head, of.tail);
      };
      const Gradients other =
          attend({choose(gradient), second.query, choose(output), choose(sums)},
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
  struct Of {
    Value gradient, query, output, logsumexp;
  };
  struct Gradients {
    Value query, key, value;
  };

  Gradients attend(const Of &of, Value key, Value value, bool causal) {
    auto made = [&] {
      if constexpr (requires { op.getMask(); })
        return OpT::create(in.b, in.loc, of.gradient, of.query, key, value,
                           of.output, of.logsumexp, Value(), causal,
                           op.getScale());
      else
        return OpT::create(in.b, in.loc, of.gradient, of.query, key, value,
                           of.output, of.logsumexp, causal, op.getScale());
    }();
    return {made.getGradQuery(), made.getGradKey(), made.getGradValue()};
  }

  OpT op;
  Blocks in;
};

} // namespace

SmallVector<Value> mesh::attendInContext(Operation *op, sharding::MeshOp mesh,
                                         StringRef axis) {
  return llvm::TypeSwitch<Operation *, SmallVector<Value>>(op)
      .Case<aten::FlashAttentionForCpuOp, aten::FlashAttentionOp>(
          [&](auto op) { return Forward(op, mesh, axis).run(); })
      .Case<aten::FlashAttentionForCpuBackwardOp,
            aten::FlashAttentionBackwardOp>(
          [&](auto op) { return Backward(op, mesh, axis).run(); })
      .Default([](Operation *) -> SmallVector<Value> {
        llvm_unreachable("isContextAttention names the same operations");
      });
}
