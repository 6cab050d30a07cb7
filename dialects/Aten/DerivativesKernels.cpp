//===- DerivativesKernels.cpp - Derivatives of kernels ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Rules.h"

using namespace mlir;
using namespace accel;
using namespace accel::aten;

//===----------------------------------------------------------------------===//
// Matmuls
//===----------------------------------------------------------------------===//

/// Gradients of `mat1` and `mat2`. As in autograd, the gradient of a factor
/// that is laid out by columns is computed transposed; so the gradient of a
/// weight used as t(w) is [out, in] in memory. The weight comes first, so that
/// its input can be freed before the next matmul.
static void productGrads(BackwardBuilder &b, Value grad, Value mat1, Value mat2,
                         bool need1, bool need2, Value &grad1, Value &grad2) {
  if (need2)
    grad2 = b.isColumnMajor(mat2) ? b.t(b.create<MmOp>(b.t(grad), mat1))
                                  : b.create<MmOp>(b.t(mat1), grad);
  if (need1)
    grad1 = b.isColumnMajor(mat1) ? b.t(b.create<MmOp>(mat2, b.t(grad)))
                                  : b.create<MmOp>(grad, b.t(mat2));
}

BACKWARD(MmOp) {
  productGrads(b, grads[0], getSelf(), getMat2(), needed[0], needed[1],
               operandGrads[0], operandGrads[1]);
  return success();
}

BACKWARD(AddmmOp) {
  if (needed[0])
    operandGrads[0] = b.sumTo(grads[0], getSelf().getType());
  productGrads(b, grads[0], getMat1(), getMat2(), needed[1], needed[2],
               operandGrads[1], operandGrads[2]);
  return success();
}

BACKWARD(EmbeddingOp) {
  if (needed[0])
    operandGrads[0] = b.create<EmbeddingDenseBackwardOp>(
        grads[0], getIndices(),
        cast<RankedTensorType>(getWeight().getType()).getDimSize(0),
        getPaddingIdx());
  return success();
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

BACKWARD(FusedRmsNormOp) {
  if (grads[1])
    return emitOpError("has no derivative through its statistics");
  if (!grads[0])
    return success();
  auto backward = b.createOp<FusedRmsNormBackwardOp>(
      grads[0], getSelf(), getRstd(), getWeight(), getNormalizedShape());
  for (unsigned i = 0; i < 2; ++i)
    if (needed[i])
      operandGrads[i] = backward->getResult(i);
  return success();
}

BACKWARD(NativeLayerNormOp) {
  if (grads[1] || grads[2])
    return emitOpError("has no derivative through its statistics");
  if (!grads[0])
    return success();
  // The kernel gives all gradients at once; those that nobody reads are freed.
  bool mask[] = {true, true, bool(getBias())};
  auto backward = b.createOp<NativeLayerNormBackwardOp>(
      grads[0], getSelf(), getMean(), getRstd(), getWeight(), getBias(),
      getNormalizedShape(), mask);
  for (auto [i, result] : llvm::enumerate(backward->getResults()))
    if (needed[i])
      operandGrads[i] = result;
  return success();
}

//===----------------------------------------------------------------------===//
// Loss
//===----------------------------------------------------------------------===//

BACKWARD(LogSoftmaxOp) {
  operandGrads[0] = b.create<LogSoftmaxBackwardDataOp>(
      grads[0], getResult(), getDim(),
      cast<RankedTensorType>(getType()).getElementType());
  return success();
}

BACKWARD(NllLossForwardOp) {
  if (grads[1])
    return emitOpError("has no derivative through its total weight");
  if (!grads[0] || !needed[0])
    return success();
  // A sum is divided by no weight; the operator wants some 0-d tensor.
  Value weight = getReduction() == 1 ? getTotalWeight() : grads[0];
  operandGrads[0] =
      b.create<NllLossBackwardOp>(grads[0], getSelf(), getTarget(), weight,
                                  getIgnoreIndex(), getReduction());
  return success();
}
