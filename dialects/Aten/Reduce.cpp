//===- Reduce.cpp - Reductions beyond sum and mean --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Rules.h"

using namespace mlir;
using namespace accel;
using namespace accel::aten;

LogicalResult SoftmaxOp::verify() {
  int64_t rank = shapeOf(getSelf()).size();
  int64_t dim = getDim();
  if (dim < 0 || dim >= rank)
    return emitOpError("dimension ")
           << dim << " is outside of a tensor of " << rank << " dimensions";
  return success();
}

INFER(AmaxOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  return inferReduction(loc, self, adaptor.getDim(), adaptor.getKeepdim(),
                        self.getElementType(), results);
}
INFER(AminOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  return inferReduction(loc, self, adaptor.getDim(), adaptor.getKeepdim(),
                        self.getElementType(), results);
}

/// Bytes stay bytes, all else becomes truth values.
static Type truthType(Type type) {
  return type.isUnsignedInteger(8) ? type
                                   : IntegerType::get(type.getContext(), 1);
}
INFER(AnyDimsOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  return inferReduction(loc, self, adaptor.getDim(), adaptor.getKeepdim(),
                        truthType(self.getElementType()), results);
}
INFER(AllDimsOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  return inferReduction(loc, self, adaptor.getDim(), adaptor.getKeepdim(),
                        truthType(self.getElementType()), results);
}

INFER(CumsumOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  if (failed(checkDim(loc, adaptor.getDim(), self.getRank())))
    return failure();
  results.push_back(self.clone(sumType(self.getElementType())));
  return success();
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

static Cost inputCost(Operation *op, double perElement) {
  double numel = tensorType(op->getOperand(0)).getNumElements();
  return {perElement * numel, defaultCost(op).bytes};
}
Cost SoftmaxOp::getCost() { return inputCost(*this, 4); }
Cost SoftmaxBackwardDataOp::getCost() { return inputCost(*this, 4); }
Cost AmaxOp::getCost() { return inputCost(*this, 1); }
Cost AminOp::getCost() { return inputCost(*this, 1); }
Cost AnyDimsOp::getCost() { return inputCost(*this, 1); }
Cost AllDimsOp::getCost() { return inputCost(*this, 1); }

/// grad * output, kept for the sum along the dimension.
int64_t SoftmaxBackwardDataOp::getWorkspaceBytes(Device device) {
  return device == Device::Cpu ? alignedBytes(tensorBytes(getType())) : 0;
}
int64_t AnyDimsOp::getWorkspaceBytes(Device) { return 0; }
int64_t AllDimsOp::getWorkspaceBytes(Device) { return 0; }

//===----------------------------------------------------------------------===//
// Derivatives
//===----------------------------------------------------------------------===//

BACKWARD(SoftmaxOp) {
  operandGrads[0] = b.create<SoftmaxBackwardDataOp>(
      grads[0], getResult(), getDim(), elementOf(getSelf()));
  return success();
}

/// Elements that are equal to the result share its gradient.
template <typename OpT>
static Value extremeBackward(OpT op, BackwardBuilder &b, Value grad) {
  grad = b.restoreDims(grad, op.getDim(), op.getKeepdim());
  Value result = b.restoreDims(op.getResult(), op.getDim(), op.getKeepdim());
  Value mask = b.create<EqTensorOp>(result, op.getSelf());
  Value taken = b.create<MulTensorOp>(grad, mask);
  if (op.getDim().empty())
    return taken;
  Value count = b.create<SumDimOp>(mask, op.getDim(), /*keepdim=*/true);
  return b.create<DivTensorOp>(taken, count);
}
BACKWARD(AmaxOp) {
  operandGrads[0] = extremeBackward(*this, b, grads[0]);
  return success();
}
BACKWARD(AminOp) {
  operandGrads[0] = extremeBackward(*this, b, grads[0]);
  return success();
}

BACKWARD(CumsumOp) {
  ArrayRef<int64_t> shape = shapeOf(getSelf());
  int64_t dim = getDim();
  operandGrads[0] = grads[0];
  if (tensorType(getSelf()).getNumElements() <= 1 || shape[dim] == 1)
    return success();
  Value grad = b.create<FlipOp>(grads[0], ArrayRef<int64_t>(dim));
  grad = b.create<CumsumOp>(grad, dim);
  operandGrads[0] = b.create<FlipOp>(grad, ArrayRef<int64_t>(dim));
  return success();
}
