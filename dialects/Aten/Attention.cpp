//===- Attention.cpp - Attention and its parts ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Result types, derivatives and costs of AtenAttention.td.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Dropped.h"
#include "dialects/Aten/Rules.h"

using namespace mlir;
using namespace accel;
using namespace accel::aten;

//===----------------------------------------------------------------------===//
// Result types
//===----------------------------------------------------------------------===//

/// What a kernel takes: fewer key heads than query heads; values whose heads
/// have another size than the keys'.
struct Takes {
  bool groups = false, ownValues = false;
};

/// `type` with another last dimension.
static RankedTensorType withLast(RankedTensorType type, int64_t size) {
  SmallVector<int64_t> shape(type.getShape());
  shape.back() = size;
  return type.clone(shape);
}

static LogicalResult checkAttention(std::optional<Location> loc, Value q,
                                    Value k, Value v, Takes takes) {
  RankedTensorType query = tensorType(q), key = tensorType(k),
                   value = tensorType(v);
  if (query.getRank() != 4 || key.getRank() != 4 || value.getRank() != 4 ||
      withLast(key, value.getDimSize(3)) != value ||
      (!takes.ownValues && key != value) ||
      query.getElementType() != key.getElementType() ||
      query.getDimSize(0) != key.getDimSize(0) ||
      query.getDimSize(3) != key.getDimSize(3))
    return emitOptionalError(
        loc, "expects q as [B, H, S, D], k as [B, G, T, D] and v as [B, G, T, ",
        takes.ownValues ? "V" : "D", "], got ", query, ", ", key, " and ",
        value);
  int64_t heads = query.getDimSize(1), groups = key.getDimSize(1);
  if (groups == 0 || heads % groups != 0 || (!takes.groups && heads != groups))
    return emitOptionalError(loc, groups, " key heads cannot serve ", heads,
                             " query heads");
  return success();
}

/// A mask is [B or 1, H or 1, S or 1, T]; with `exact` it has the scores'
/// shape.
static LogicalResult checkMask(std::optional<Location> loc, Value mask, Value q,
                               Value k, bool exact = false) {
  if (!mask)
    return success();
  RankedTensorType type = tensorType(mask), query = tensorType(q);
  int64_t scores[] = {query.getDimSize(0), query.getDimSize(1),
                      query.getDimSize(2), tensorType(k).getDimSize(2)};
  bool fits = type.getRank() == 4 && type.getDimSize(3) == scores[3] &&
              (type.getElementType() == query.getElementType() ||
               (type.getElementType().isF32() && !exact));
  for (int64_t i = 0; fits && i < 3; ++i)
    fits =
        type.getDimSize(i) == scores[i] || (!exact && type.getDimSize(i) == 1);
  if (fits)
    return success();
  return emitOptionalError(loc, "mask ", type, " does not fit scores of ",
                           query.clone(scores));
}

template <typename Adaptor>
static LogicalResult inferForward(MLIRContext *context,
                                  std::optional<Location> loc, Adaptor adaptor,
                                  Takes takes, SmallVectorImpl<Type> &results) {
  if (failed(checkAttention(loc, adaptor.getQuery(), adaptor.getKey(),
                            adaptor.getValue(), takes)))
    return failure();
  RankedTensorType query = tensorType(adaptor.getQuery());
  results.push_back(
      withLast(query, tensorType(adaptor.getValue()).getDimSize(3)));
  results.push_back(RankedTensorType::get(query.getShape().drop_back(),
                                          Float32Type::get(context)));
  return success();
}

template <typename Adaptor>
static LogicalResult inferBackward(std::optional<Location> loc, Adaptor adaptor,
                                   Takes takes,
                                   SmallVectorImpl<Type> &results) {
  if (failed(checkAttention(loc, adaptor.getQuery(), adaptor.getKey(),
                            adaptor.getValue(), takes)))
    return failure();
  RankedTensorType query = tensorType(adaptor.getQuery());
  Type output = withLast(query, tensorType(adaptor.getValue()).getDimSize(3));
  if (adaptor.getGradOut().getType() != output ||
      adaptor.getOut().getType() != output)
    return emitOptionalError(loc, "gradient and output are of ", output,
                             ", got ", adaptor.getGradOut().getType(), " and ",
                             adaptor.getOut().getType());
  results.append(
      {query, adaptor.getKey().getType(), adaptor.getValue().getType()});
  return success();
}

/// torch's flash kernel wants equal sizes, and Transformer Engine's does not.
static constexpr Takes grouped{.groups = true, .ownValues = true};

INFER(ScaledDotProductAttentionOp) {
  if (failed(checkAttention(loc, adaptor.getQuery(), adaptor.getKey(),
                            adaptor.getValue(), grouped)) ||
      failed(checkMask(loc, adaptor.getMask(), adaptor.getQuery(),
                       adaptor.getKey())))
    return failure();
  results.push_back(withLast(tensorType(adaptor.getQuery()),
                             tensorType(adaptor.getValue()).getDimSize(3)));
  return success();
}
LogicalResult ScaledDotProductAttentionOp::verify() {
  if (static_cast<int64_t>(getWindow()) < 0)
    return emitOpError("has a window of ")
           << static_cast<int64_t>(getWindow()) << " keys";
  if (getSoftcap().isNegative() || !getSoftcap().isFinite())
    return emitOpError("caps scores at a number below 0");
  if (getWindow() && !getIsCausal())
    return emitOpError("has a window, which needs a causal mask");
  return success();
}

INFER(FlashAttentionForCpuOp) {
  if (failed(checkMask(loc, adaptor.getMask(), adaptor.getQuery(),
                       adaptor.getKey())))
    return failure();
  return inferForward(context, loc, adaptor, {.groups = true}, results);
}
INFER(FlashAttentionOp) {
  return inferForward(context, loc, adaptor, grouped, results);
}
template <typename Adaptor>
static LogicalResult
inferEfficient(MLIRContext *context, std::optional<Location> loc,
               Adaptor adaptor, SmallVectorImpl<Type> &results) {
  if (failed(inferForward(context, loc, adaptor, grouped, results)) ||
      failed(checkMask(loc, adaptor.getMask(), adaptor.getQuery(),
                       adaptor.getKey(), /*exact=*/true)))
    return failure();
  // The kernel pads the rows of its statistics to a multiple of 32.
  auto stats = cast<RankedTensorType>(results.back());
  SmallVector<int64_t> shape(stats.getShape());
  shape.back() = (shape.back() + 31) / 32 * 32;
  results.back() = stats.clone(shape);
  return success();
}
INFER(EfficientAttentionOp) {
  return inferEfficient(context, loc, adaptor, results);
}
INFER(DroppedFlashAttentionOp) {
  return inferForward(context, loc, adaptor, grouped, results);
}
INFER(DroppedEfficientAttentionOp) {
  return inferEfficient(context, loc, adaptor, results);
}
INFER(DroppedFlashAttentionBackwardOp) {
  return inferBackward(loc, adaptor, grouped, results);
}
INFER(DroppedEfficientAttentionBackwardOp) {
  return inferBackward(loc, adaptor, grouped, results);
}
INFER(CudnnAttentionOp) {
  if (failed(checkMask(loc, adaptor.getMask(), adaptor.getQuery(),
                       adaptor.getKey())) ||
      failed(inferForward(context, loc, adaptor, grouped, results)))
    return failure();
  // Its statistics have a dimension for the features.
  auto stats = cast<RankedTensorType>(results.back());
  SmallVector<int64_t> shape(stats.getShape());
  shape.push_back(1);
  results.back() = stats.clone(shape);
  return success();
}
INFER(FlashAttentionForCpuBackwardOp) {
  return inferBackward(loc, adaptor, {.groups = true}, results);
}
INFER(FlashAttentionBackwardOp) {
  return inferBackward(loc, adaptor, grouped, results);
}
INFER(EfficientAttentionBackwardOp) {
  return inferBackward(loc, adaptor, grouped, results);
}
INFER(EfficientAttentionMaskBackwardOp) {
  if (failed(inferBackward(loc, adaptor, grouped, results)) ||
      failed(checkMask(loc, adaptor.getMask(), adaptor.getQuery(),
                       adaptor.getKey(), /*exact=*/true)))
    return failure();
  results.push_back(adaptor.getMask().getType());
  return success();
}
INFER(CudnnAttentionBackwardOp) {
  return inferBackward(loc, adaptor, grouped, results);
}

/// [B, S, H, D] and [B, T, G, D].
static LogicalResult checkWindow(std::optional<Location> loc, Value q, Value k,
                                 Value v, uint64_t before) {
  RankedTensorType query = tensorType(q), key = tensorType(k);
  if (query.getRank() != 4 || key.getRank() != 4 || key != tensorType(v) ||
      query.getElementType() != key.getElementType() ||
      query.getDimSize(0) != key.getDimSize(0) ||
      query.getDimSize(3) != key.getDimSize(3) || key.getDimSize(2) == 0 ||
      query.getDimSize(2) % key.getDimSize(2) != 0)
    return emitOptionalError(
        loc, "expects q as [B, S, H, D], k and v as [B, T, G, D], got ", query,
        ", ", key, " and ", tensorType(v));
  if (static_cast<int64_t>(before) < 0)
    return emitOptionalError(loc, "sees ", static_cast<int64_t>(before),
                             " keys before its own");
  return success();
}

INFER(WindowAttentionOp) {
  if (failed(checkWindow(loc, adaptor.getQuery(), adaptor.getKey(),
                         adaptor.getValue(), adaptor.getBefore())))
    return failure();
  RankedTensorType query = tensorType(adaptor.getQuery());
  results.push_back(query);
  results.push_back(RankedTensorType::get(
      {query.getDimSize(0), query.getDimSize(2), query.getDimSize(1)},
      Float32Type::get(context)));
  return success();
}
INFER(WindowAttentionBackwardOp) {
  if (failed(checkWindow(loc, adaptor.getQuery(), adaptor.getKey(),
                         adaptor.getValue(), adaptor.getBefore())))
    return failure();
  Type query = adaptor.getQuery().getType();
  if (adaptor.getGradOut().getType() != query ||
      adaptor.getOut().getType() != query)
    return emitOptionalError(loc, "gradient and output have the query's type ",
                             query, ", got ", adaptor.getGradOut().getType(),
                             " and ", adaptor.getOut().getType());
  results.append(
      {query, adaptor.getKey().getType(), adaptor.getValue().getType()});
  return success();
}

//===----------------------------------------------------------------------===//
// Derivatives
//===----------------------------------------------------------------------===//

/// The gradients of q, k and v come from one kernel.
template <typename BackwardOp, typename OpT>
static LogicalResult
attentionBackward(OpT op, BackwardBuilder &b, ArrayRef<Value> grads,
                  ArrayRef<bool> needed, MutableArrayRef<Value> operandGrads) {
  if (grads[1])
    return op.emitOpError("has no derivative through its log-sum-exp");
  if (!grads[0])
    return success();
  BackwardOp backward;
  if constexpr (requires { op.getDropoutKey(); }) {
    if constexpr (requires { op.getMask(); }) {
      if (op.getMask() && needed[3])
        return op.emitOpError("has no derivative by its mask");
      backward = b.createOp<BackwardOp>(
          grads[0], op.getQuery(), op.getKey(), op.getValue(), op.getOutput(),
          op.getLogsumexp(), op.getMask(), op.getIsCausal(), op.getScale(),
          op.getDropoutP(), op.getDropoutKey());
    } else {
      backward = b.createOp<BackwardOp>(
          grads[0], op.getQuery(), op.getKey(), op.getValue(), op.getOutput(),
          op.getLogsumexp(), op.getIsCausal(), op.getScale(), op.getDropoutP(),
          op.getDropoutKey());
    }
  } else if constexpr (requires { op.getMask(); }) {
    if (op.getMask() && needed[3])
      return op.emitOpError("has no derivative by its mask");
    backward = b.createOp<BackwardOp>(
        grads[0], op.getQuery(), op.getKey(), op.getValue(), op.getOutput(),
        op.getLogsumexp(), op.getMask(), op.getIsCausal(), op.getScale());
  } else {
    backward = b.createOp<BackwardOp>(
        grads[0], op.getQuery(), op.getKey(), op.getValue(), op.getOutput(),
        op.getLogsumexp(), op.getIsCausal(), op.getScale());
  }
  for (unsigned i = 0; i < 3; ++i)
    if (needed[i])
      operandGrads[i] = backward->getResult(i);
  return success();
}

BACKWARD(FlashAttentionForCpuOp) {
  return attentionBackward<FlashAttentionForCpuBackwardOp>(
      *this, b, grads, needed, operandGrads);
}
BACKWARD(FlashAttentionOp) {
  return attentionBackward<FlashAttentionBackwardOp>(*this, b, grads, needed,
                                                     operandGrads);
}
BACKWARD(EfficientAttentionOp) {
  if (getMask() && needed[3] && grads[0] && !grads[1]) {
    auto backward = b.createOp<EfficientAttentionMaskBackwardOp>(
        grads[0], getQuery(), getKey(), getValue(), getMask(), getOutput(),
        getLogsumexp(), getIsCausal(), getScale());
    for (unsigned i = 0; i < 4; ++i)
      if (needed[i])
        operandGrads[i] = backward->getResult(i);
    return success();
  }
  return attentionBackward<EfficientAttentionBackwardOp>(*this, b, grads,
                                                         needed, operandGrads);
}
BACKWARD(CudnnAttentionOp) {
  return attentionBackward<CudnnAttentionBackwardOp>(*this, b, grads, needed,
                                                     operandGrads);
}
BACKWARD(DroppedFlashAttentionOp) {
  return attentionBackward<DroppedFlashAttentionBackwardOp>(
      *this, b, grads, needed, operandGrads);
}
BACKWARD(DroppedEfficientAttentionOp) {
  return attentionBackward<DroppedEfficientAttentionBackwardOp>(
      *this, b, grads, needed, operandGrads);
}
BACKWARD(WindowAttentionOp) {
  if (grads[1])
    return emitOpError("has no derivative through its log-sum-exp");
  if (!grads[0])
    return success();
  auto backward = b.createOp<WindowAttentionBackwardOp>(
      grads[0], getQuery(), getKey(), getValue(), getOutput(), getLogsumexp(),
      getBefore(), getScale());
  for (unsigned i = 0; i < 3; ++i)
    if (needed[i])
      operandGrads[i] = backward->getResult(i);
  return success();
}
