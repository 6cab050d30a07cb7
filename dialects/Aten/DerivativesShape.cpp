//===- DerivativesShape.cpp - Derivatives of views and sums -----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Rules.h"

using namespace mlir;
using namespace accel;
using namespace accel::aten;

BACKWARD(TOp) {
  operandGrads[0] = b.t(grads[0]);
  return success();
}

BACKWARD(TransposeIntOp) {
  operandGrads[0] = b.create<TransposeIntOp>(grads[0], getDim0(), getDim1());
  return success();
}

BACKWARD(PermuteOp) {
  SmallVector<int64_t> inverse(getDims().size());
  for (auto [i, dim] : llvm::enumerate(getDims()))
    inverse[dim] = i;
  operandGrads[0] = b.create<PermuteOp>(grads[0], inverse);
  return success();
}

BACKWARD(ViewOp) {
  operandGrads[0] = b.reshape(grads[0], shapeOf(getSelf()));
  return success();
}

BACKWARD(ExpandOp) {
  operandGrads[0] = b.sumTo(grads[0], getSelf().getType());
  return success();
}

BACKWARD(UnsqueezeOp) {
  operandGrads[0] = b.create<SqueezeDimOp>(grads[0], getDim());
  return success();
}

BACKWARD(SqueezeDimOp) {
  operandGrads[0] = b.create<UnsqueezeOp>(grads[0], getDim());
  return success();
}

BACKWARD(SliceTensorOp) {
  operandGrads[0] = b.create<SliceBackwardOp>(
      grads[0], shapeOf(getSelf()), getDim(), getStart(), getEnd(), getStep());
  return success();
}

BACKWARD(CatOp) {
  int64_t begin = 0;
  for (auto [i, tensor] : llvm::enumerate(getTensors())) {
    int64_t end = begin + shapeOf(tensor)[getDim()];
    if (needed[i]) {
      Value part =
          b.create<SliceTensorOp>(grads[0], getDim(), begin, end, int64_t(1));
      operandGrads[i] = b.sumTo(part, tensor.getType());
    }
    begin = end;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

BACKWARD(SumDimOp) {
  Value grad = b.restoreDims(grads[0], getDim(), getKeepdim());
  operandGrads[0] = b.create<ExpandOp>(grad, shapeOf(getSelf()));
  return success();
}

BACKWARD(MeanDimOp) {
  int64_t count = 1;
  for (int64_t dim : getDim())
    count *= shapeOf(getSelf())[dim];
  // Autograd expands first and divides each element; the quotients are equal.
  Value grad = b.restoreDims(grads[0], getDim(), getKeepdim());
  grad = b.create<DivScalarOp>(grad, count);
  operandGrads[0] = b.create<ExpandOp>(grad, shapeOf(getSelf()));
  return success();
}
