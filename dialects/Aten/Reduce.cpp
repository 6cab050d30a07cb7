//===- Reduce.cpp - Reductions beyond sum and mean --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Eager.h"
#include "dialects/Aten/Rules.h"

#include <cmath>

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

/// Of no elements there is no largest.
static LogicalResult checkElements(std::optional<Location> loc,
                                   RankedTensorType self,
                                   ArrayRef<int64_t> dims) {
  for (int64_t dim : dims)
    if (dim >= 0 && dim < self.getRank() && self.getDimSize(dim) == 0)
      return emitOptionalError(loc, "dimension ", dim, " has no elements");
  return success();
}

INFER(AmaxOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  if (failed(checkElements(loc, self, adaptor.getDim())))
    return failure();
  return inferReduction(loc, self, adaptor.getDim(), adaptor.getKeepdim(),
                        self.getElementType(), results);
}
INFER(AminOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  if (failed(checkElements(loc, self, adaptor.getDim())))
    return failure();
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

INFER(ProdDimIntOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  return inferReduction(loc, self, adaptor.getDim(), adaptor.getKeepdim(),
                        sumType(self.getElementType()), results);
}

INFER(LinalgVectorNormOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  double ord = adaptor.getOrd().convertToDouble();
  // The largest or smallest of none, or 0 to a negative power.
  if ((ord < 0 || std::isinf(ord)) &&
      failed(checkElements(loc, self, adaptor.getDim())))
    return failure();
  return inferReduction(loc, self, adaptor.getDim(), adaptor.getKeepdim(),
                        self.getElementType(), results);
}

INFER(VarCorrectionOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  return inferReduction(loc, self, adaptor.getDim(), adaptor.getKeepdim(),
                        self.getElementType(), results);
}
INFER(LogsumexpOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  return inferReduction(loc, self, adaptor.getDim(), adaptor.getKeepdim(),
                        self.getElementType(), results);
}

/// The value and the position of an extreme element; `positions` alone for
/// argmax and argmin.
template <typename Adaptor>
static LogicalResult inferExtreme(std::optional<Location> loc, Adaptor adaptor,
                                  bool values, SmallVectorImpl<Type> &results) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  int64_t dim = adaptor.getDim();
  if (failed(checkDim(loc, dim, self.getRank())))
    return failure();
  if (self.getDimSize(dim) == 0)
    return emitOptionalError(loc, "dimension ", dim, " has no elements");
  if (!values && self.getElementType().isInteger(1))
    return emitOptionalError(loc, "expects numbers, got ", self);
  if (values && failed(inferReduction(loc, self, dim, adaptor.getKeepdim(),
                                      self.getElementType(), results)))
    return failure();
  return inferReduction(loc, self, dim, adaptor.getKeepdim(),
                        IntegerType::get(self.getContext(), 64), results);
}
INFER(MaxDimOp) { return inferExtreme(loc, adaptor, true, results); }
INFER(MinDimOp) { return inferExtreme(loc, adaptor, true, results); }
INFER(ArgmaxOp) { return inferExtreme(loc, adaptor, false, results); }
INFER(ArgminOp) { return inferExtreme(loc, adaptor, false, results); }

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

static Cost inputCost(Operation *op, double perElement) {
  double numel = tensorType(op->getOperand(0)).getNumElements();
  return {perElement * numel, defaultCost(op).bytes};
}
static Cost softmaxCost(Operation *op) {
  Cost cost = inputCost(op, 4);
  if (op->hasAttr(causalScoresAttr))
    for (Value operand : op->getOperands())
      cost.bytes -= static_cast<double>(tensorBytes(operand.getType())) / 2;
  return cost;
}
Cost SoftmaxOp::getCost() { return softmaxCost(*this); }
Cost SoftmaxBackwardDataOp::getCost() { return softmaxCost(*this); }
Cost AmaxOp::getCost() { return inputCost(*this, 1); }
Cost AminOp::getCost() { return inputCost(*this, 1); }
Cost AnyDimsOp::getCost() { return inputCost(*this, 1); }
Cost AllDimsOp::getCost() { return inputCost(*this, 1); }
Cost VarCorrectionOp::getCost() { return inputCost(*this, 4); }
Cost ProdDimIntOp::getCost() { return inputCost(*this, 1); }
Cost LinalgVectorNormOp::getCost() { return inputCost(*this, 2); }
Cost LogsumexpOp::getCost() { return inputCost(*this, 4); }
Cost MaxDimOp::getCost() { return inputCost(*this, 1); }
Cost MinDimOp::getCost() { return inputCost(*this, 1); }
Cost ArgmaxOp::getCost() { return inputCost(*this, 1); }
Cost ArgminOp::getCost() { return inputCost(*this, 1); }

/// On CPUs an operand that is not row-major is copied first.
int64_t SoftmaxBackwardDataOp::getWorkspaceBytes(Device device) {
  int64_t bytes = 0;
  LayoutAnalysis layout;
  for (Value operand : getOperands())
    if (device == Device::Cpu && !layout.isContiguous(operand))
      bytes += (tensorBytes(operand.getType()) + 63) / 64 * 64;
  return bytes;
}
int64_t AnyDimsOp::getWorkspaceBytes(Device device) {
  return device == Device::Cpu ? kernelWorkspaceBytes(*this) : 0;
}
int64_t AllDimsOp::getWorkspaceBytes(Device device) {
  return device == Device::Cpu ? kernelWorkspaceBytes(*this) : 0;
}

//===----------------------------------------------------------------------===//
// Derivatives
//===----------------------------------------------------------------------===//

BACKWARD(SoftmaxOp) {
  Value grad = b.create<SoftmaxBackwardDataOp>(grads[0], getResult(), getDim(),
                                               elementOf(getSelf()));
  if ((*this)->hasAttr(causalScoresAttr))
    grad.getDefiningOp()->setAttr(causalScoresAttr,
                                  UnitAttr::get(grad.getContext()));
  operandGrads[0] = grad;
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

BACKWARD(VarCorrectionOp) {
  // (2 / (n - correction)) * grad * (self - mean)
  double count = 1;
  for (int64_t dim : getDim())
    count *= shapeOf(getSelf())[dim];
  double factor = 2.0 / (count - getCorrection().convertToDouble());
  Value grad = b.restoreDims(grads[0], getDim(), getKeepdim());
  Value mean = getSelf();
  if (!getDim().empty())
    mean = b.create<MeanDimOp>(getSelf(), getDim(), /*keepdim=*/true);
  Value scaled = b.create<MulScalarOp>(grad, factor);
  Value centred = b.create<SubTensorOp>(getSelf(), mean);
  operandGrads[0] = b.create<MulTensorOp>(scaled, centred);
  return success();
}

BACKWARD(LogsumexpOp) {
  // grad * exp(self - result)
  Value grad = b.restoreDims(grads[0], getDim(), getKeepdim());
  Value result = b.restoreDims(getResult(), getDim(), getKeepdim());
  Value share = b.create<ExpOp>(b.create<SubTensorOp>(getSelf(), result));
  operandGrads[0] = b.create<MulTensorOp>(grad, share);
  return success();
}

/// The chosen element takes the whole gradient.
template <typename OpT>
static LogicalResult chosenBackward(OpT op, BackwardBuilder &b,
                                    ArrayRef<Value> grads,
                                    MutableArrayRef<Value> operandGrads) {
  if (!grads[0])
    return success();
  int64_t dim = op.getDim();
  Value grad = b.restoreDims(grads[0], dim, op.getKeepdim());
  Value indices = b.restoreDims(op.getIndices(), dim, op.getKeepdim());
  operandGrads[0] = b.create<ScatterSrcOp>(b.full(op.getSelf().getType()),
                                           indices, grad, dim);
  return success();
}
BACKWARD(MaxDimOp) { return chosenBackward(*this, b, grads, operandGrads); }
BACKWARD(MinDimOp) { return chosenBackward(*this, b, grads, operandGrads); }

BACKWARD(ProdDimIntOp) {
  // The product of the others: (grad * result) / x, where zeros count as ones;
  // next to another zero it is 0.
  int64_t dim = getDim();
  Value self = getSelf(), grad = b.restoreDims(grads[0], dim, getKeepdim());
  auto number = [&](int64_t value) {
    return cast<TypedAttr>(
        mlir::Attribute(b.getBuilder().getI64IntegerAttr(value)));
  };
  Value zero = b.create<EqScalarOp>(self, number(0));
  Value safe = b.create<MaskedFillScalarOp>(self, zero, number(1));
  Value product = b.create<ProdDimIntOp>(safe, dim, /*keepdim=*/true);
  Value slope =
      b.create<DivTensorOp>(b.create<MulTensorOp>(grad, product), safe);
  Value zeros = b.create<SumDimOp>(zero, ArrayRef<int64_t>(dim), true);
  Value others = b.create<GtTensorOp>(zeros, zero);
  operandGrads[0] = b.create<MaskedFillScalarOp>(slope, others, number(0));
  return success();
}

/// As norm_backward of FunctionsManual.cpp.
BACKWARD(LinalgVectorNormOp) {
  double p = getOrd().convertToDouble();
  if (p == 0.0)
    return success();
  Value self = getSelf();
  Value grad = b.restoreDims(grads[0], getDim(), getKeepdim());
  Value norm = b.restoreDims(getResult(), getDim(), getKeepdim());
  auto zero =
      cast<TypedAttr>(mlir::Attribute(b.getBuilder().getI64IntegerAttr(0)));
  auto unlessZero = [&](Value value, Value tested) -> Value {
    return b.create<MaskedFillScalarOp>(
        value, b.create<EqScalarOp>(tested, zero), zero);
  };
  if (p == 1.0) {
    operandGrads[0] = b.create<MulTensorOp>(b.create<SgnOp>(self), grad);
  } else if (p == 2.0) {
    Value direction = unlessZero(b.create<DivTensorOp>(self, norm), norm);
    operandGrads[0] = b.create<MulTensorOp>(grad, direction);
  } else if (std::isinf(p)) {
    Value largest = b.create<EqTensorOp>(b.create<AbsOp>(self), norm);
    Value isNan = b.create<IsnanOp>(self);
    Value unknown = b.create<LogicalAndOp>(isNan, b.create<IsnanOp>(norm));
    Value mask = b.create<LogicalOrOp>(largest, unknown);
    Value share = grad;
    if (!getDim().empty())
      share = b.create<DivTensorOp>(
          grad, b.create<SumDimOp>(mask, getDim(), /*keepdim=*/true));
    Value sign = b.create<SgnOp>(self);
    operandGrads[0] =
        b.create<MulTensorOp>(sign, b.create<MulTensorOp>(share, mask));
  } else if (p < 1.0) {
    Value power = b.create<PowTensorScalarOp>(b.create<AbsOp>(self), p - 1.0);
    Value sign = b.create<SgnOp>(self);
    Value scaled = b.create<MulTensorOp>(sign, unlessZero(power, self));
    scaled = b.create<MulTensorOp>(scaled, grad);
    operandGrads[0] = b.create<MulTensorOp>(
        scaled, b.create<PowTensorScalarOp>(norm, 1.0 - p));
  } else {
    Value size = b.create<AbsOp>(self);
    Value factor = self;
    if (p < 2.0)
      factor = b.create<SgnOp>(self);
    Value scaled = b.create<MulTensorOp>(
        factor, b.create<PowTensorScalarOp>(size, p < 2.0 ? p - 1.0 : p - 2.0));
    Value scale =
        b.create<DivTensorOp>(grad, b.create<PowTensorScalarOp>(norm, p - 1.0));
    operandGrads[0] = b.create<MulTensorOp>(scaled, unlessZero(scale, norm));
  }
  return success();
}
