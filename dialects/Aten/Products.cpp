//===- Products.cpp - Matmuls of matrices, batches, vectors
//----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Rules.h"

using namespace mlir;
using namespace accel;
using namespace accel::aten;

static LogicalResult checkElements(std::optional<Location> loc,
                                   RankedTensorType a, RankedTensorType b) {
  if (a.getElementType() == b.getElementType())
    return success();
  return emitOptionalError(loc, "expects one element type, got ", a, " and ",
                           b);
}

/// Fails unless the tensors have `rank1` and `rank2` dimensions and one type.
static LogicalResult checkFactors(std::optional<Location> loc,
                                  RankedTensorType a, RankedTensorType b,
                                  int64_t rank1, int64_t rank2) {
  if (a.getRank() != rank1 || b.getRank() != rank2)
    return emitOptionalError(loc, "expects tensors of ", rank1, " and ", rank2,
                             " dimensions, got ", a, " and ", b);
  return checkElements(loc, a, b);
}

/// Fails unless `self` can be added to the product, the last of `results`.
static LogicalResult checkAddend(std::optional<Location> loc,
                                 RankedTensorType self,
                                 ArrayRef<Type> results) {
  auto product = cast<RankedTensorType>(results.back());
  auto shape = broadcastShapes({self.getShape(), product.getShape()});
  if (!shape || ArrayRef<int64_t>(*shape) != product.getShape() ||
      self.getElementType() != product.getElementType())
    return emitOptionalError(loc, "cannot add ", self, " to ", product);
  return success();
}

LogicalResult aten::inferMatmul(std::optional<Location> loc, RankedTensorType a,
                                RankedTensorType b,
                                SmallVectorImpl<Type> &results) {
  if (a.getRank() != 2 || b.getRank() != 2)
    return emitOptionalError(loc, "expects two matrices, got ", a, " and ", b);
  if (failed(checkElements(loc, a, b)))
    return failure();
  if (a.getDimSize(1) != b.getDimSize(0))
    return emitOptionalError(loc, "inner sizes differ: ", a, " and ", b);
  results.push_back(a.clone({a.getDimSize(0), b.getDimSize(1)}));
  return success();
}

INFER(MmOp) {
  return inferMatmul(loc, tensorType(adaptor.getSelf()),
                     tensorType(adaptor.getMat2()), results);
}

INFER(AddmmOp) {
  if (failed(inferMatmul(loc, tensorType(adaptor.getMat1()),
                         tensorType(adaptor.getMat2()), results)))
    return failure();
  return checkAddend(loc, tensorType(adaptor.getSelf()), results);
}

static LogicalResult inferBmm(std::optional<Location> loc, RankedTensorType a,
                              RankedTensorType b,
                              SmallVectorImpl<Type> &results) {
  if (failed(checkFactors(loc, a, b, 3, 3)))
    return failure();
  if (a.getDimSize(0) != b.getDimSize(0))
    return emitOptionalError(loc, "batches differ: ", a, " and ", b);
  if (a.getDimSize(2) != b.getDimSize(1))
    return emitOptionalError(loc, "inner sizes differ: ", a, " and ", b);
  results.push_back(
      a.clone({a.getDimSize(0), a.getDimSize(1), b.getDimSize(2)}));
  return success();
}

INFER(BmmOp) {
  return inferBmm(loc, tensorType(adaptor.getSelf()),
                  tensorType(adaptor.getMat2()), results);
}

INFER(BaddbmmOp) {
  if (failed(inferBmm(loc, tensorType(adaptor.getBatch1()),
                      tensorType(adaptor.getBatch2()), results)))
    return failure();
  return checkAddend(loc, tensorType(adaptor.getSelf()), results);
}

INFER(MvOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  RankedTensorType vec = tensorType(adaptor.getVec());
  if (failed(checkFactors(loc, self, vec, 2, 1)))
    return failure();
  if (self.getDimSize(1) != vec.getDimSize(0))
    return emitOptionalError(loc, "inner sizes differ: ", self, " and ", vec);
  results.push_back(self.clone({self.getDimSize(0)}));
  return success();
}

INFER(DotOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  RankedTensorType other = tensorType(adaptor.getTensor());
  if (failed(checkFactors(loc, self, other, 1, 1)))
    return failure();
  if (self != other)
    return emitOptionalError(loc, "sizes differ: ", self, " and ", other);
  results.push_back(self.clone(ArrayRef<int64_t>()));
  return success();
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

static Cost productCost(Operation *op, Value result, int64_t inner) {
  double numel = tensorType(result).getNumElements();
  Cost cost = defaultCost(op); // the bytes
  return {2.0 * numel * inner, cost.bytes};
}

Cost BmmOp::getCost() {
  return productCost(*this, getResult(), shapeOf(getSelf())[2]);
}
Cost BaddbmmOp::getCost() {
  Cost cost = productCost(*this, getResult(), shapeOf(getBatch1())[2]);
  cost.flops += tensorType(getResult()).getNumElements();
  return cost;
}
Cost MvOp::getCost() {
  return productCost(*this, getResult(), shapeOf(getSelf())[1]);
}
Cost DotOp::getCost() {
  return productCost(*this, getResult(), shapeOf(getSelf())[0]);
}

//===----------------------------------------------------------------------===//
// Derivatives
//===----------------------------------------------------------------------===//

static Value transposed(BackwardBuilder &b, Value value) {
  if (auto inner = value.getDefiningOp<TransposeIntOp>())
    if (inner.getDim0() + inner.getDim1() == 3 &&
        inner.getDim0() * inner.getDim1() == 2)
      return inner.getSelf();
  return b.create<TransposeIntOp>(value, int64_t(1), int64_t(2));
}

static Value scaled(BackwardBuilder &b, Value grad, double factor) {
  return factor == 1.0 ? grad : b.create<MulScalarOp>(grad, factor);
}

BACKWARD(BmmOp) {
  if (needed[0])
    operandGrads[0] = b.create<BmmOp>(grads[0], transposed(b, getMat2()));
  if (needed[1])
    operandGrads[1] = b.create<BmmOp>(transposed(b, getSelf()), grads[0]);
  return success();
}

BACKWARD(BaddbmmOp) {
  double alpha = getAlpha().convertToDouble();
  double beta = getBeta().convertToDouble();
  if (needed[0])
    operandGrads[0] = b.sumTo(scaled(b, grads[0], beta), getSelf().getType());
  if (needed[1])
    operandGrads[1] =
        scaled(b, b.create<BmmOp>(grads[0], transposed(b, getBatch2())), alpha);
  if (needed[2])
    operandGrads[2] =
        scaled(b, b.create<BmmOp>(transposed(b, getBatch1()), grads[0]), alpha);
  return success();
}

BACKWARD(MvOp) {
  if (needed[0]) {
    // The outer product of the gradient and the vector.
    Value column = b.create<UnsqueezeOp>(grads[0], int64_t(1));
    Value row = b.create<UnsqueezeOp>(getVec(), int64_t(0));
    operandGrads[0] = b.create<MulTensorOp>(column, row);
  }
  if (needed[1])
    operandGrads[1] = b.create<MvOp>(b.t(getSelf()), grads[0]);
  return success();
}

BACKWARD(DotOp) {
  if (needed[0])
    operandGrads[0] = b.create<MulTensorOp>(grads[0], getTensor());
  if (needed[1])
    operandGrads[1] = b.create<MulTensorOp>(grads[0], getSelf());
  return success();
}
