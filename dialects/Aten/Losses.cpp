//===- Losses.cpp - Losses of element by element ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Rules.h"

using namespace mlir;
using namespace accel;
using namespace accel::aten;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// The type of the loss of elements of `type` for each `reduction`.
static LogicalResult reduced(std::optional<Location> loc, RankedTensorType type,
                             int64_t reduction,
                             SmallVectorImpl<Type> &results) {
  if (reduction < 0 || reduction > 2)
    return emitOptionalError(
        loc, "reduction is 0 (none), 1 (mean) or 2 (sum), not ", reduction);
  results.push_back(reduction ? type.clone(ArrayRef<int64_t>()) : type);
  return success();
}

/// Fails unless `other` has the shape of x; its element type may differ where
/// the kernel promotes.
static LogicalResult checkOperand(std::optional<Location> loc, Value self,
                                  Value other, bool promotes) {
  if (shapeOf(self) == shapeOf(other) &&
      (promotes || elementOf(self) == elementOf(other)))
    return success();
  return emitOptionalError(loc, "operand ", other.getType(),
                           " is not of the input's type ", self.getType());
}

/// A loss of x and targets.
template <typename Adaptor>
static LogicalResult inferLoss(std::optional<Location> loc, Adaptor adaptor,
                               bool promotes, SmallVectorImpl<Type> &results) {
  Value self = adaptor.getSelf(), target = adaptor.getTarget();
  if (failed(checkOperand(loc, self, target, promotes)))
    return failure();
  RankedTensorType type = tensorType(self);
  return reduced(loc, type.clone(promoteTypes({type, tensorType(target)})),
                 adaptor.getReduction(), results);
}

/// The gradient of x from one of the loss.
template <typename Adaptor>
static LogicalResult inferLossGrad(std::optional<Location> loc, Adaptor adaptor,
                                   SmallVectorImpl<Type> &results) {
  Value self = adaptor.getSelf();
  SmallVector<Type> loss;
  if (failed(checkOperand(loc, self, adaptor.getTarget(), false)) ||
      failed(reduced(loc, tensorType(self), adaptor.getReduction(), loss)))
    return failure();
  if (adaptor.getGradOutput().getType() != loss[0])
    return emitOptionalError(loc, "gradient ",
                             adaptor.getGradOutput().getType(),
                             " is not of the loss's type ", loss[0]);
  results.push_back(self.getType());
  return success();
}

INFER(MseLossOp) { return inferLoss(loc, adaptor, true, results); }
INFER(MseLossBackwardOp) { return inferLossGrad(loc, adaptor, results); }

INFER(SmoothL1LossOp) {
  if (adaptor.getBeta().convertToDouble() < 0)
    return emitOptionalError(loc, "beta is negative");
  return inferLoss(loc, adaptor, true, results);
}
INFER(SmoothL1LossBackwardOp) { return inferLossGrad(loc, adaptor, results); }

INFER(HuberLossOp) {
  if (adaptor.getDelta().convertToDouble() <= 0)
    return emitOptionalError(loc, "delta is not positive");
  return inferLoss(loc, adaptor, false, results);
}
INFER(HuberLossBackwardOp) { return inferLossGrad(loc, adaptor, results); }

INFER(BinaryCrossEntropyOp) {
  if (adaptor.getWeight() &&
      failed(checkOperand(loc, adaptor.getSelf(), adaptor.getWeight(), false)))
    return failure();
  return inferLoss(loc, adaptor, false, results);
}
INFER(BinaryCrossEntropyBackwardOp) {
  if (adaptor.getWeight() &&
      failed(checkOperand(loc, adaptor.getSelf(), adaptor.getWeight(), false)))
    return failure();
  return inferLossGrad(loc, adaptor, results);
}

// (1 - target) is multiplied in place.
INFER(BinaryCrossEntropyWithLogitsOp) {
  Value self = adaptor.getSelf(), target = adaptor.getTarget();
  if (Value weight = adaptor.getPosWeight()) {
    auto shape = broadcastShapes({shapeOf(self), shapeOf(weight)});
    if (!shape || ArrayRef<int64_t>(*shape) != shapeOf(self) ||
        elementOf(weight) != elementOf(self))
      return emitOptionalError(loc, "weight ", weight.getType(),
                               " does not fit ", self.getType());
  }
  if (failed(checkOperand(loc, self, target, true)))
    return failure();
  return reduced(loc, tensorType(target), adaptor.getReduction(), results);
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

static Cost perElement(Operation *op, double flops) {
  return {flops * tensorType(op->getOperand(0)).getNumElements(),
          defaultCost(op).bytes};
}
Cost MseLossOp::getCost() { return perElement(*this, 3); }
Cost SmoothL1LossOp::getCost() { return perElement(*this, 5); }
Cost HuberLossOp::getCost() { return perElement(*this, 5); }
Cost BinaryCrossEntropyOp::getCost() { return perElement(*this, 8); }
Cost BinaryCrossEntropyWithLogitsOp::getCost() { return perElement(*this, 8); }

/// `tensors` of the size of x; then, of a mean, its divisor (Rationale.md).
static int64_t lossWorkspace(Operation *op, int64_t reduction, int64_t tensors,
                             Device device) {
  if (device != Device::Cpu)
    return 0;
  int64_t bytes = alignedBytes(tensorBytes(op->getOperand(0).getType()));
  return tensors * bytes + (reduction == 1 ? 2 * 64 : 0);
}
#define LOSS_WORKSPACE(OP)                                                     \
  int64_t OP::getWorkspaceBytes(Device device) {                               \
    return lossWorkspace(*this, getReduction(), getReduction() ? 1 : 0,        \
                         device);                                              \
  }
LOSS_WORKSPACE(MseLossOp)
LOSS_WORKSPACE(SmoothL1LossOp)
LOSS_WORKSPACE(HuberLossOp)
LOSS_WORKSPACE(BinaryCrossEntropyOp)

/// log(sigmoid(x)) and what it keeps of its own; with weights, these less 1 and
/// a product of the size of x.
int64_t BinaryCrossEntropyWithLogitsOp::getWorkspaceBytes(Device device) {
  int64_t bytes =
      lossWorkspace(*this, getReduction(), getReduction() ? 2 : 1, device);
  if (device != Device::Cpu || !getPosWeight())
    return bytes;
  int64_t x = alignedBytes(tensorBytes(getSelf().getType()));
  int64_t weights = alignedBytes(tensorBytes(getPosWeight().getType()));
  return std::max(bytes, x + weights + std::max<int64_t>(x, 2 * 64));
}

int64_t BinaryCrossEntropyBackwardOp::getWorkspaceBytes(Device device) {
  return lossWorkspace(*this, getReduction(), 0, device);
}

#define NO_WORKSPACE(OP)                                                       \
  int64_t OP::getWorkspaceBytes(Device) { return 0; }
NO_WORKSPACE(MseLossBackwardOp)
NO_WORKSPACE(SmoothL1LossBackwardOp)
NO_WORKSPACE(HuberLossBackwardOp)

//===----------------------------------------------------------------------===//
// Layout
//===----------------------------------------------------------------------===//

#define LOSS_STRIDES(OP, EXPR)                                                 \
  Strides OP::getStrides(LayoutAnalysis &layout, unsigned) {                   \
    if (shapeOf(getResult()).empty())                                          \
      return {};                                                               \
    return EXPR;                                                               \
  }
LOSS_STRIDES(MseLossOp, layout.pointwiseStrides(*this))
LOSS_STRIDES(SmoothL1LossOp, layout.pointwiseStrides(*this))
LOSS_STRIDES(HuberLossOp, layout.preservedStrides(getSelf()))
LOSS_STRIDES(BinaryCrossEntropyOp, layout.preservedStrides(getSelf()))
LOSS_STRIDES(BinaryCrossEntropyWithLogitsOp,
             layout.preservedStrides(getTarget()))

#define CONTIGUOUS(OP)                                                         \
  Strides OP::getStrides(LayoutAnalysis &, unsigned) {                         \
    return Strides(contiguousStrides(shapeOf(getSelf())));                     \
  }
CONTIGUOUS(MseLossBackwardOp)
CONTIGUOUS(SmoothL1LossBackwardOp)
CONTIGUOUS(HuberLossBackwardOp)

Strides BinaryCrossEntropyBackwardOp::getStrides(LayoutAnalysis &layout,
                                                 unsigned) {
  return layout.preservedStrides(getSelf());
}

//===----------------------------------------------------------------------===//
// Derivatives
//===----------------------------------------------------------------------===//

static Value castTo(BackwardBuilder &b, Value value, Type type) {
  return elementOf(value) == type ? value : b.create<ToCopyOp>(value, type);
}

// x and targets change places: these losses are those of the difference.
#define SYMMETRIC(LOSS, GRAD, ...)                                             \
  BACKWARD(LOSS) {                                                             \
    Type type = elementOf(getResult());                                        \
    Value self = castTo(b, getSelf(), type);                                   \
    Value target = castTo(b, getTarget(), type);                               \
    if (needed[0])                                                             \
      operandGrads[0] =                                                        \
          b.sumTo(b.create<GRAD>(grads[0], self, target, __VA_ARGS__),         \
                  getSelf().getType());                                        \
    if (needed[1])                                                             \
      operandGrads[1] =                                                        \
          b.sumTo(b.create<GRAD>(grads[0], target, self, __VA_ARGS__),         \
                  getTarget().getType());                                      \
    return success();                                                          \
  }
SYMMETRIC(MseLossOp, MseLossBackwardOp, getReduction())
SYMMETRIC(SmoothL1LossOp, SmoothL1LossBackwardOp, getReduction(), getBeta())
SYMMETRIC(HuberLossOp, HuberLossBackwardOp, getReduction(), getDelta())

/// A mean divides by the number of elements.
static Value ofMean(BackwardBuilder &b, Value grad, int64_t reduction) {
  if (reduction != 1)
    return grad;
  return b.create<DivScalarOp>(grad, tensorType(grad).getNumElements());
}

BACKWARD(BinaryCrossEntropyOp) {
  Value self = getSelf();
  if (needed[0])
    operandGrads[0] = b.create<BinaryCrossEntropyBackwardOp>(
        grads[0], self, getTarget(), getWeight(), getReduction());
  if (needed[1]) {
    Value logOfRest = b.create<LogOp>(b.create<RsubScalarOp>(self, int64_t(1)));
    Value odds = b.create<SubTensorOp>(logOfRest, b.create<LogOp>(self));
    Value grad = b.create<MulTensorOp>(odds, grads[0]);
    if (getWeight())
      grad = b.create<MulTensorOp>(grad, getWeight());
    operandGrads[1] = ofMean(b, grad, getReduction());
  }
  if (needed.size() > 2 && needed[2]) {
    Value loss =
        b.create<BinaryCrossEntropyOp>(self, getTarget(), Value(), int64_t(0));
    operandGrads[2] =
        ofMean(b, b.create<MulTensorOp>(loss, grads[0]), getReduction());
  }
  return success();
}

BACKWARD(BinaryCrossEntropyWithLogitsOp) {
  Value self = getSelf(), target = getTarget(), positive = getPosWeight();
  if (needed[0]) {
    Value share = b.create<SigmoidOp>(self), slope;
    if (positive) {
      // (pos_weight y + 1 - y) sigmoid(x) - pos_weight y
      Value t = b.create<MulTensorOp>(positive, target);
      Value sum =
          b.create<SubTensorOp>(b.create<AddScalarOp>(t, int64_t(1)), target);
      slope = b.create<SubTensorOp>(b.create<MulTensorOp>(sum, share), t);
    } else {
      slope = b.create<SubTensorOp>(share, target);
    }
    operandGrads[0] = b.sumTo(
        ofMean(b, b.create<MulTensorOp>(slope, grads[0]), getReduction()),
        self.getType());
  }
  if (needed[1]) {
    Value slope;
    if (positive) {
      Value ofNegative = b.create<LogSigmoidOp>(b.create<NegOp>(self));
      slope = b.create<SubTensorOp>(
          ofNegative,
          b.create<MulTensorOp>(b.create<LogSigmoidOp>(self), positive));
    } else {
      slope = b.create<NegOp>(self);
    }
    operandGrads[1] = b.sumTo(
        ofMean(b, b.create<MulTensorOp>(slope, grads[0]), getReduction()),
        target.getType());
  }
  if (needed.size() > 2 && needed[2]) {
    Value slope = b.create<NegOp>(
        b.create<MulTensorOp>(target, b.create<LogSigmoidOp>(self)));
    operandGrads[2] = b.sumTo(
        ofMean(b, b.create<MulTensorOp>(slope, grads[0]), getReduction()),
        positive.getType());
  }
  return success();
}
