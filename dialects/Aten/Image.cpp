//===- Image.cpp - Channel norms, pools, resizing ---------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Rules.h"

using namespace mlir;
using namespace accel;
using namespace accel::aten;

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

static Cost perElement(Operation *op, Value value, double flops) {
  return {flops * tensorType(value).getNumElements(), defaultCost(op).bytes};
}
Cost BatchNormFunctionalOp::getCost() {
  return perElement(*this, getInput(), 6);
}
Cost BatchNormNoStatsOp::getCost() { return perElement(*this, getInput(), 6); }
Cost BatchNormNoTrainingOp::getCost() {
  return perElement(*this, getInput(), 2);
}
Cost BatchNormBackwardOp::getCost() {
  return perElement(*this, getInput(), 10);
}
Cost BatchNormEvalBackwardOp::getCost() {
  return perElement(*this, getInput(), 6);
}
Cost NativeGroupNormOp::getCost() { return perElement(*this, getInput(), 6); }
Cost NativeGroupNormBackwardOp::getCost() {
  return perElement(*this, getInput(), 12);
}

/// Each output reads a window.
static double window(ArrayRef<int64_t> kernel) {
  return static_cast<double>(kernel[0]) * kernel[1];
}
Cost MaxPool2dOp::getCost() {
  return perElement(*this, getOutput(), window(getKernelSize()));
}
Cost AvgPool2dOp::getCost() {
  return perElement(*this, getOutput(), window(getKernelSize()));
}
Cost AdaptiveAvgPool2dOp::getCost() { return perElement(*this, getSelf(), 1); }

/// Four elements, each with a factor.
Cost UpsampleBilinear2dOp::getCost() {
  return perElement(*this, getOutput(), 8);
}
Cost UpsampleBilinear2dBackwardOp::getCost() {
  return perElement(*this, getGradOutput(), 8);
}

/// Sums over the batch. The running statistics are copied, updated in place and
/// returned: the copies are results.
int64_t BatchNormFunctionalOp::getWorkspaceBytes(Device device) {
  if (device != Device::Cpu)
    return 0;
  return 2 * alignedBytes(tensorBytes(getWeight().getType()));
}

//===----------------------------------------------------------------------===//
// Layout
//===----------------------------------------------------------------------===//

/// Channels come last in memory where they do in `like`.
static Strides imageLike(LayoutAnalysis &layout, Value like, Value result) {
  ArrayRef<int64_t> shape = shapeOf(result);
  if (layout.isChannelsLast(like) && shape.size() == shapeOf(like).size())
    return LayoutAnalysis::channelsLast(shape);
  return Strides(contiguousStrides(shape));
}
#define IMAGE_STRIDES(OP, LIKE)                                                \
  Strides OP::getStrides(LayoutAnalysis &layout, unsigned result) {            \
    return imageLike(layout, LIKE, (*this)->getResult(result));                \
  }
IMAGE_STRIDES(BatchNormFunctionalOp, getInput())
IMAGE_STRIDES(BatchNormNoStatsOp, getInput())
IMAGE_STRIDES(BatchNormNoTrainingOp, getInput())
IMAGE_STRIDES(BatchNormBackwardOp, getInput())
IMAGE_STRIDES(BatchNormEvalBackwardOp, getInput())
IMAGE_STRIDES(MaxPool2dOp, getSelf())
IMAGE_STRIDES(MaxPool2dBackwardOp, getSelf())
IMAGE_STRIDES(AvgPool2dOp, getSelf())
IMAGE_STRIDES(AvgPool2dBackwardOp, getSelf())
IMAGE_STRIDES(AdaptiveAvgPool2dOp, getSelf())
IMAGE_STRIDES(AdaptiveAvgPool2dBackwardOp, getSelf())
IMAGE_STRIDES(UpsampleNearest2dOp, getSelf())
IMAGE_STRIDES(UpsampleNearest2dBackwardOp, getGradOutput())
IMAGE_STRIDES(UpsampleBilinear2dOp, getSelf())
IMAGE_STRIDES(UpsampleBilinear2dBackwardOp, getGradOutput())

//===----------------------------------------------------------------------===//
// Derivatives
//===----------------------------------------------------------------------===//

/// Hands out a backward's results, of those operands among the first three that
/// its mask asked for.
static void distribute(Operation *backward, ArrayRef<bool> mask,
                       MutableArrayRef<Value> operandGrads) {
  unsigned next = 0;
  for (unsigned i = 0; i < 3; ++i)
    if (mask[i])
      operandGrads[i] = backward->getResult(next++);
}

template <typename OpT>
static LogicalResult
trainingBackward(OpT op, BackwardBuilder &b, ArrayRef<Value> grads,
                 ArrayRef<bool> needed, MutableArrayRef<Value> operandGrads) {
  for (Value grad : grads.drop_front())
    if (grad)
      return op.emitOpError("has no derivative through its statistics");
  ArrayRef<bool> mask = needed.take_front(3);
  if (!grads[0] || !llvm::is_contained(mask, true))
    return success();
  auto backward = b.createOp<BatchNormBackwardOp>(
      grads[0], op.getInput(), op.getWeight(), op.getSaveMean(),
      op.getSaveInvstd(), op.getEps(), mask);
  distribute(backward, mask, operandGrads);
  return success();
}
BACKWARD(BatchNormFunctionalOp) {
  return trainingBackward(*this, b, grads, needed, operandGrads);
}
BACKWARD(BatchNormNoStatsOp) {
  return trainingBackward(*this, b, grads, needed, operandGrads);
}

BACKWARD(BatchNormNoTrainingOp) {
  ArrayRef<bool> mask = needed.take_front(3);
  if (!llvm::is_contained(mask, true))
    return success();
  auto backward = b.createOp<BatchNormEvalBackwardOp>(
      grads[0], getInput(), getWeight(), getRunningMean(), getRunningVar(),
      getEps(), mask);
  distribute(backward, mask, operandGrads);
  return success();
}

BACKWARD(NativeGroupNormOp) {
  if (grads[1] || grads[2])
    return emitOpError("has no derivative through its statistics");
  ArrayRef<bool> mask = needed.take_front(3);
  if (!grads[0])
    return success();
  auto backward = b.createOp<NativeGroupNormBackwardOp>(
      grads[0], getInput(), getMean(), getRstd(), getWeight(), getN(), getC(),
      getHxW(), getGroup(), mask);
  distribute(backward, mask, operandGrads);
  return success();
}

BACKWARD(MaxPool2dOp) {
  operandGrads[0] = b.create<MaxPool2dBackwardOp>(
      grads[0], getSelf(), getIndices(), getKernelSize(), getStride(),
      getPadding(), getDilation(), getCeilMode());
  return success();
}

BACKWARD(AvgPool2dOp) {
  operandGrads[0] = b.create<AvgPool2dBackwardOp>(
      grads[0], getSelf(), getKernelSize(), getStride(), getPadding(),
      getCeilMode(), getCountIncludePad());
  return success();
}

BACKWARD(AdaptiveAvgPool2dOp) {
  operandGrads[0] = b.create<AdaptiveAvgPool2dBackwardOp>(grads[0], getSelf());
  return success();
}

BACKWARD(UpsampleNearest2dOp) {
  operandGrads[0] = b.create<UpsampleNearest2dBackwardOp>(
      grads[0], getOutputSize(), shapeOf(getSelf()));
  return success();
}

BACKWARD(UpsampleBilinear2dOp) {
  operandGrads[0] = b.create<UpsampleBilinear2dBackwardOp>(
      grads[0], b.getBuilder().getDenseI64ArrayAttr(getOutputSize()),
      b.getBuilder().getDenseI64ArrayAttr(shapeOf(getSelf())),
      getAlignCornersAttr(), getScalesHAttr(), getScalesWAttr());
  return success();
}
