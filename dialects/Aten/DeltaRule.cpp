//===- DeltaRule.cpp - The gated delta rule by chunks -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Bytes, work and traffic are those of torch_chunk_gated_delta_rule of
// transformers 5.23 (modeling_qwen3_5.py), which runs where
// flash-linear-attention is not installed: what its lines allocate, what the
// derivatives of torch keep of it, and how long Python's names hold the rest.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Fused.h"

#include "dialects/Aten/Rules.h"

#include <algorithm>

using namespace mlir;
using namespace accel;
using namespace accel::aten;

namespace {

constexpr int64_t chunk = 64;

/// Bytes of the tensors that the rule makes.
struct Delta {
  int64_t batch, tokens /* of a sequence */, heads, keyHeads, keyDim, valueDim,
      width; // bytes of an element of the operands
  bool cast;

  int64_t chunks() const { return (tokens + chunk - 1) / chunk; }
  int64_t given() const { return batch * tokens * heads; }
  int64_t padded() const { return batch * chunks() * chunk * heads; }
  // In fp32, and as matmuls read them: keys (or queries), values, products
  // inside of chunks, a state; a number for each head.
  int64_t key() const { return 4 * padded() * keyDim; }
  int64_t value() const { return 4 * padded() * valueDim; }
  int64_t scores() const { return 4 * padded() * chunk; }
  int64_t state() const { return 4 * batch * heads * keyDim * valueDim; }
  int64_t low(int64_t wide) const { return wide / 4 * width; }
  int64_t one(int64_t all) const { return all / chunks(); }

  /// What each chunk's steps keep: with casts two copies of the state and
  /// itself, three of keys, two of values, one of scores; without, the state
  /// and the new values.
  int64_t eachChunk() const {
    if (!cast)
      return state() + one(value());
    return 2 * low(state()) + state() + low(one(3 * key() + 2 * value())) +
           low(one(scores()));
  }
  /// Of the last chunk nobody reads the new state: its decay, the keys and the
  /// new values that make it.
  int64_t lastState() const {
    return cast ? state() + low(one(key() + value())) : 0;
  }
  /// Before the loop: queries and keys as they came and padded, values, keys
  /// times beta, decays and the system of each chunk, what solves it for values
  /// and keys; matmuls' operands and results; a number a head each of two
  /// norms, beta and three exponentials of sums.
  int64_t beforeLoop() const {
    const int64_t wide = 8 * given() * keyDim + 4 * key() + 2 * value() +
                         2 * scores() + 8 * given() + 16 * padded() +
                         4 * batch * heads * chunks();
    return cast ? wide + low(4 * key() + 2 * scores())
                : wide + 3 * scores() + 2 * key();
  }
  int64_t saved() const {
    // The first state is zeros, of which the factors get no gradient.
    const int64_t first = cast ? low(one(2 * key())) : 0;
    return beforeLoop() + chunks() * eachChunk() - first - lastState();
  }
  /// All that is there when the last chunk's state is made, and when the
  /// chunks' outputs are copied into their order.
  int64_t forwardPeak() const {
    const int64_t named =
        2 * value() + key() + 8 * padded() + (cast ? scores() + 2 * key() : 0);
    const int64_t made =
        cast ? one(value()) + low(one(value())) + 2 * state() + low(state())
             : one(value()) + 3 * state();
    const int64_t first = cast ? low(one(2 * key())) : 0;
    const int64_t loop =
        beforeLoop() + named + chunks() * eachChunk() - first + made;
    const int64_t gone =
        cast ? 2 * state() + low(state()) + lastState() : 3 * state();
    return std::max(loop, loop - gone + value());
  }
  /// Above what is saved. A slice's gradient is a whole tensor of zeros around
  /// it, and autograd sums them up chunk by chunk: of queries, keys twice,
  /// values and scores. Most is there in the second chunk from the end, when
  /// the outputs' gradient is copied, or the first of queries or of values are
  /// summed.
  int64_t backwardPeak() const {
    if (!cast)
      return std::max(2 * value() + 5 * key() + scores() - one(value()),
                      4 * value() + 3 * key() + scores() - state() -
                          2 * one(value()));
    const int64_t gone = 2 * low(state()) +
                         low(one(3 * key() + 2 * value() + scores())) + state();
    const int64_t copied = 3 * value() + 3 * key() + scores() + state() +
                           3 * one(value()) + low(one(value())) - gone;
    const int64_t later = gone + low(one(value() + scores()));
    const int64_t step = low(state() + one(key()));
    return std::max(
        {copied,
         2 * value() + 5 * key() + scores() + state() + one(value()) - later -
             step,
         4 * value() + 3 * key() + scores() + state() - later - 2 * step});
  }

  double inside(double columns) const {
    return 2.0 * double(padded()) * double(chunk) * columns;
  }
  double states() const {
    return 2.0 * double(padded()) * double(keyDim) * double(valueDim);
  }
  /// Keys and queries with keys; half of two systems; the scores' values;
  /// reads of the state for values and outputs, and what is added to it.
  double flops() const {
    return inside(2.0 * double(keyDim) + 0.5 * double(keyDim + valueDim) +
                  double(valueDim)) +
           3 * states();
  }
  /// Bytes that the operators read and write, counted over shapes: linear in
  /// tokens, but for slices' gradients, which make the backward's square.
  double forwardBytes() const {
    const double n = double(padded()), s = double(state()) / 4;
    const double repeats = heads == keyHeads ? 0 : 8 * n * double(keyDim);
    return repeats +
           (cast ? n * (180 * double(keyDim) + 92 * double(valueDim) + 3978) +
                       s * (36 * double(chunks()) + 4)
                 : n * (152 * double(keyDim) + 100 * double(valueDim) + 4234) +
                       s * (32 * double(chunks()) + 4));
  }
  double backwardBytes() const {
    const double n = double(padded()), s = double(state()) / 4;
    const double square =
        n * double(chunks()) *
        (48 * double(keyDim) + 24 * double(valueDim) + 16 * double(chunk));
    return square +
           n * (390 * double(keyDim) + 146 * double(valueDim) + 10000) +
           s * 80 * double(chunks());
  }
};

int64_t bytesOf(Value value) {
  return elementOf(value).getIntOrFloatBitWidth() / 8;
}

/// Sizes of `mixed` [B, S, 2 * key_heads * key_dim + heads * size].
FailureOr<Delta> sizesOf(std::optional<Location> loc, ArrayRef<int64_t> mixed,
                         int64_t heads, int64_t keyHeads, int64_t keyDim,
                         int64_t width, bool cast) {
  if (heads < 1 || keyHeads < 1 || keyDim < 1 || heads % keyHeads != 0)
    return emitOptionalError(loc, heads, " heads of values are not divided by ",
                             keyHeads, " of keys, of ", keyDim, " elements");
  if (mixed.size() != 3)
    return emitOptionalError(loc, "expects [B, S, C]");
  const int64_t values = mixed[2] - 2 * keyHeads * keyDim;
  if (values < heads || values % heads != 0)
    return emitOptionalError(loc, mixed[2],
                             " elements are not queries and keys "
                             "of ",
                             keyHeads, " heads and values of ", heads);
  return Delta{mixed[0], mixed[1],       heads, keyHeads,
               keyDim,   values / heads, width, cast};
}

Delta sizesOf(GatedDeltaRuleOp op) {
  return *sizesOf(std::nullopt, shapeOf(op.getMixed()),
                  shapeOf(op.getDecay())[2],
                  static_cast<int64_t>(op.getKeyHeads()),
                  static_cast<int64_t>(op.getKeyDim()), bytesOf(op.getMixed()),
                  op.getCast());
}
Delta sizesOf(GatedDeltaRuleBackwardOp op) {
  return *sizesOf(std::nullopt, shapeOf(op.getGradMixed()),
                  static_cast<int64_t>(op.getHeads()),
                  static_cast<int64_t>(op.getKeyHeads()),
                  static_cast<int64_t>(op.getKeyDim()),
                  bytesOf(op.getGradMixed()), op.getCast());
}

/// [B, M] in fp32.
RankedTensorType savedType(const Delta &delta, MLIRContext *context) {
  const int64_t each = 4 * std::max<int64_t>(delta.batch, 1);
  return RankedTensorType::get({delta.batch, (delta.saved() + each - 1) / each},
                               Float32Type::get(context));
}

} // namespace

INFER(GatedDeltaRuleOp) {
  RankedTensorType mixed = tensorType(adaptor.getMixed());
  ArrayRef<int64_t> decay = shapeOf(adaptor.getDecay());
  if (mixed.getRank() != 3 || decay.size() != 3 ||
      decay.take_front(2) != mixed.getShape().take_front(2) ||
      shapeOf(adaptor.getBeta()) != decay)
    return emitOptionalError(loc,
                             "expects [B, S, C] and two of [B, S, heads], "
                             "got ",
                             mixed, ", ", adaptor.getDecay().getType(), " and ",
                             adaptor.getBeta().getType());
  if (elementOf(adaptor.getBeta()) != mixed.getElementType())
    return emitOptionalError(loc, "beta must be of the type of ", mixed);
  auto delta = sizesOf(loc, mixed.getShape(), decay[2],
                       static_cast<int64_t>(adaptor.getKeyHeads()),
                       static_cast<int64_t>(adaptor.getKeyDim()),
                       bytesOf(adaptor.getMixed()), adaptor.getCast());
  if (failed(delta))
    return failure();
  results.append({mixed.clone({mixed.getDimSize(0), mixed.getDimSize(1),
                               delta->heads * delta->valueDim}),
                  savedType(*delta, context)});
  return success();
}

INFER(GatedDeltaRuleBackwardOp) {
  RankedTensorType grad = tensorType(adaptor.getGradOut());
  const auto heads = static_cast<int64_t>(adaptor.getHeads()),
             keys = 2 * static_cast<int64_t>(adaptor.getKeyHeads() *
                                             adaptor.getKeyDim());
  if (grad.getRank() != 3)
    return emitOptionalError(loc, "expects [B, S, values], got ", grad);
  SmallVector<int64_t> mixed(grad.getShape());
  mixed[2] += keys;
  auto delta =
      sizesOf(loc, mixed, heads, static_cast<int64_t>(adaptor.getKeyHeads()),
              static_cast<int64_t>(adaptor.getKeyDim()),
              bytesOf(adaptor.getGradOut()), adaptor.getCast());
  if (failed(delta))
    return failure();
  if (adaptor.getSaved().getType() != savedType(*delta, context))
    return emitOptionalError(loc, "expects ", savedType(*delta, context),
                             " of the forward, got ",
                             adaptor.getSaved().getType());
  SmallVector<int64_t> each(grad.getShape());
  each[2] = heads;
  results.append({grad.clone(mixed),
                  RankedTensorType::get(each, Float32Type::get(context)),
                  grad.clone(each)});
  return success();
}

BACKWARD(GatedDeltaRuleOp) {
  if (grads[1])
    return emitOpError("has no derivative through what it saves");
  if (!grads[0])
    return success();
  auto backward = b.createOp<GatedDeltaRuleBackwardOp>(
      grads[0], getSaved(), static_cast<uint64_t>(shapeOf(getDecay())[2]),
      getKeyHeads(), getKeyDim(), getCast());
  for (unsigned i = 0; i < needed.size(); ++i)
    if (needed[i])
      operandGrads[i] = backward->getResult(i);
  return success();
}

Cost GatedDeltaRuleOp::getCost() {
  const Delta delta = sizesOf(*this);
  return {delta.flops(), delta.forwardBytes()};
}

Cost GatedDeltaRuleBackwardOp::getCost() {
  const Delta delta = sizesOf(*this);
  return {2 * delta.flops(), delta.backwardBytes()};
}

int64_t GatedDeltaRuleOp::getWorkspaceBytes(Device) {
  const Delta delta = sizesOf(*this);
  return delta.forwardPeak() - delta.saved();
}

/// What it returns is made when most of that is gone.
int64_t GatedDeltaRuleBackwardOp::getWorkspaceBytes(Device) {
  const Delta delta = sizesOf(*this);
  const int64_t results = delta.width * (delta.given() * (delta.valueDim + 1) +
                                         2 * delta.batch * delta.tokens *
                                             delta.keyHeads * delta.keyDim) +
                          4 * delta.given();
  // The gradient that came is gone once it is copied to fp32.
  const int64_t came = delta.width * delta.given() * delta.valueDim;
  return std::max<int64_t>(0, delta.backwardPeak() - came - results);
}
