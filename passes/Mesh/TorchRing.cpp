//===- TorchRing.cpp - Attention as context_parallel does it --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Mesh/TorchRing.h"

#include "dialects/Aten/Layout.h"
#include "passes/Mesh/ContextBlocks.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel;
using namespace accel::mesh;

namespace {

struct Pair {
  Value key, value;
};

/// What forward and backward do with keys and values.
class Ring : public Blocks {
public:
  Ring(Operation *op, sharding::MeshOp mesh, StringRef axis, Rotation rotation)
      : Blocks(op, mesh, axis), rotation(rotation) {}

  Value contiguous(Value value) {
    return aten::LayoutAnalysis().isContiguous(value)
               ? value
               : make<aten::CloneOp>(value);
  }

  /// Both in one buffer, one behind the other.
  Value pack(const Pair &pair) {
    auto flat = [&](Value value) {
      return make<aten::ViewOp>(
          value, ArrayRef<int64_t>{tensorTypeOf(value).getNumElements()});
    };
    return make<aten::CatOp>(ValueRange{flat(pair.key), flat(pair.value)},
                             uint64_t(0));
  }
  /// From `begin` on in a buffer, shaped as `like`.
  Pair unpack(Value buffer, int64_t begin, const Pair &like) {
    auto part = [&](Value of) {
      const int64_t count = tensorTypeOf(of).getNumElements();
      Value cut =
          make<aten::SliceTensorOp>(buffer, uint64_t(0), uint64_t(begin),
                                    uint64_t(begin + count), uint64_t(1));
      begin += count;
      return make<aten::ViewOp>(cut, tensorTypeOf(of).getShape());
    };
    Value key = part(like.key);
    return {key, part(like.value)};
  }

  /// That of the rank before this one.
  Value fromBefore(Value buffer) {
    return sharding::PermuteOp::create(b, loc, buffer.getType(), buffer, 1,
                                       axis);
  }

  /// Sends `current`, keys and values that are attended to next: on to the
  /// rank behind this one, or this rank's own to all at once.
  void send(const Pair &current) {
    if (rotation == Rotation::AllToAll) {
      received = fromBefore(pack(current));
    } else if (!received) {
      Value sent = pack(current);
      const RankedTensorType type = tensorTypeOf(sent);
      received = sharding::AllGatherOp::create(
          b, loc, type.clone({type.getDimSize(0) * ranks}), sent, 0, axis, 1,
          false);
    }
  }
  /// Those of the rank `shift` before this one, the last, in the order of
  /// `shift`; shaped as `own`. They are sent on where another rank needs them.
  Pair take(const Pair &own, int64_t shift) {
    const int64_t each = tensorTypeOf(own.key).getNumElements() +
                         tensorTypeOf(own.value).getNumElements();
    const Pair taken = unpack(
        received,
        rotation == Rotation::AllToAll ? 0 : (ranks - 1 - shift) * each, own);
    if (shift < ranks - 1)
      send(taken);
    return taken;
  }

private:
  Rotation rotation;
  Value received;
};

template <typename OpT>
SmallVector<Value> forward(OpT op, sharding::MeshOp mesh, StringRef axis,
                           Rotation rotation) {
  Ring in(op, mesh, axis, rotation);
  const Pair own = {in.contiguous(op.getKey()), in.contiguous(op.getValue())};
  in.send(own);
  const Attended first =
      in.attend(op, op.getQuery(), own.key, own.value, /*causal=*/true);
  Value output = in.inF32(first.output);
  Value sums = in.besideFeatures(first.logsumexp);
  for (int64_t shift = 1; shift < in.ranks; ++shift) {
    const Pair other = in.take(own, shift);
    const Attended block =
        in.attend(op, op.getQuery(), in.halves(other.key).head,
                  in.halves(other.value).head, /*causal=*/false);
    Value blockOutput = in.inF32(block.output);
    Value blockSums = in.besideFeatures(block.logsumexp);
    Value share =
        in.make<aten::SigmoidOp>(in.make<aten::SubTensorOp>(blockSums, sums));
    Value moved = in.make<aten::MulTensorOp>(
        share, in.make<aten::SubTensorOp>(output, blockOutput));
    output = in.make<aten::SubTensorOp>(output, moved);
    sums = in.make<aten::SubTensorOp>(
        sums, in.make<aten::LogSigmoidOp>(
                  in.make<aten::SubTensorOp>(sums, blockSums)));
  }
  Value result = in.cast(output, tensorTypeOf(op.getOutput()).getElementType());
  Blocks::markJoined(result.getDefiningOp());
  Blocks::markJoined(sums.getDefiningOp());
  Value logsumexp = sums;
  if (tensorTypeOf(op.getLogsumexp()).getRank() == 3)
    logsumexp = in.make<aten::SqueezeDimOp>(sums, uint64_t(3));
  op->replaceAllUsesWith(ValueRange{result, logsumexp});
  op->erase();
  return {result, logsumexp};
}

template <typename OpT>
SmallVector<Value> backward(OpT op, sharding::MeshOp mesh, StringRef axis,
                            Rotation rotation) {
  Ring in(op, mesh, axis, rotation);
  auto zeros = [&](Value like) {
    return in.make<aten::FullOp>(tensorTypeOf(like).getShape(),
                                 in.b.getF64FloatAttr(0), in.b.getF32Type());
  };
  Value ofQuery = zeros(op.getQuery());
  Pair of = {zeros(op.getKey()), zeros(op.getValue())};
  const Pair own = {in.contiguous(op.getKey()), in.contiguous(op.getValue())};
  in.send(own);
  const AttendedQueries queries = {op.getGradOut(), op.getQuery(), op.getOut(),
                                   op.getLogsumexp()};
  const AttendedGradients first =
      in.attend(op, queries, own.key, own.value, /*causal=*/true);
  of = {in.add(of.key, first.key), in.add(of.value, first.value)};
  Value sent = in.fromBefore(in.pack(of));
  // The block's gradient is there until the next one is.
  Value ofBlock = first.query;
  for (int64_t shift = 1; shift < in.ranks; ++shift) {
    const Pair other = in.take(own, shift);
    const AttendedGradients block =
        in.attend(op, queries, in.halves(other.key).head,
                  in.halves(other.value).head, /*causal=*/false);
    ofQuery = in.add(ofQuery, ofBlock);
    ofBlock = block.query;
    const Pair before = in.unpack(sent, 0, of);
    auto update = [&](Value whole, Value ofHead) {
      const Halves halves = in.halves(whole);
      return in.make<aten::CatOp>(
          ValueRange{in.add(halves.head, ofHead), halves.tail}, tokens);
    };
    of = {update(before.key, block.key), update(before.value, block.value)};
    sent = in.fromBefore(in.pack(of));
  }
  ofQuery = in.add(ofQuery, ofBlock);
  Value query =
      in.cast(ofQuery, tensorTypeOf(op.getGradQuery()).getElementType());
  const Pair made = in.unpack(
      in.cast(sent, tensorTypeOf(op.getGradKey()).getElementType()), 0, of);
  op->replaceAllUsesWith(ValueRange{query, made.key, made.value});
  op->erase();
  return {query, made.key, made.value};
}

} // namespace

SmallVector<Value> mesh::attendAsTorch(Operation *op, sharding::MeshOp mesh,
                                       StringRef axis, Rotation rotation) {
  return llvm::TypeSwitch<Operation *, SmallVector<Value>>(op)
      .Case<aten::FlashAttentionForCpuOp, aten::FlashAttentionOp,
            aten::CudnnAttentionOp>(
          [&](auto op) { return forward(op, mesh, axis, rotation); })
      .Case<aten::FlashAttentionForCpuBackwardOp,
            aten::FlashAttentionBackwardOp, aten::CudnnAttentionBackwardOp>(
          [&](auto op) { return backward(op, mesh, axis, rotation); })
      .Default([](Operation *) -> SmallVector<Value> {
        llvm_unreachable("isContextAttention names the same operations");
      });
}
