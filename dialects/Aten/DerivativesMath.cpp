//===- DerivativesMath.cpp - Derivatives of functions, masks ----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Each rule follows PyTorch's derivatives.yaml and FunctionsManual.cpp operator
// by operator.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Rules.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::aten;

/// The gradient of the only operand is EXPR of `grad`.
#define UNARY(OP, EXPR)                                                        \
  BACKWARD(OP) {                                                               \
    Value grad = grads[0];                                                     \
    operandGrads[0] = b.sumTo(EXPR, getSelf().getType());                      \
    return success();                                                          \
  }
/// No gradient flows through steps.
#define NO_SLOPE(OP)                                                           \
  BACKWARD(OP) { return success(); }

UNARY(SigmoidOp, b.create<SigmoidBackwardOp>(grad, getResult()))
UNARY(LogOp, b.create<DivTensorOp>(grad, getSelf()))
UNARY(Log2Op,
      b.create<DivTensorOp>(grad, b.create<MulScalarOp>(getSelf(), M_LN2)))
UNARY(Log10Op,
      b.create<DivTensorOp>(grad, b.create<MulScalarOp>(getSelf(), M_LN10)))
UNARY(Log1pOp,
      b.create<DivTensorOp>(grad, b.create<AddScalarOp>(getSelf(), int64_t(1))))
UNARY(Exp2Op,
      b.create<MulScalarOp>(b.create<MulTensorOp>(grad, getResult()), M_LN2))
UNARY(Expm1Op, b.create<MulTensorOp>(grad, b.create<AddScalarOp>(getResult(),
                                                                 int64_t(1))))
UNARY(TanOp,
      b.create<MulTensorOp>(
          grad, b.create<AddScalarOp>(b.create<PowTensorScalarOp>(getResult(),
                                                                  int64_t(2)),
                                      int64_t(1))))
UNARY(AtanOp, b.create<DivTensorOp>(
                  grad, b.create<AddScalarOp>(b.create<MulTensorOp>(getSelf(),
                                                                    getSelf()),
                                              int64_t(1))))
UNARY(SinhOp, b.create<MulTensorOp>(grad, b.create<CoshOp>(getSelf())))
UNARY(CoshOp, b.create<MulTensorOp>(grad, b.create<SinhOp>(getSelf())))
UNARY(AbsOp, b.create<MulTensorOp>(grad, b.create<SgnOp>(getSelf())))
NO_SLOPE(SgnOp)
NO_SLOPE(SignOp)
NO_SLOPE(FloorOp)
NO_SLOPE(CeilOp)
NO_SLOPE(RoundOp)
NO_SLOPE(TruncOp)
UNARY(HardswishOp, b.create<HardswishBackwardOp>(grad, getSelf()))
UNARY(HardsigmoidOp, b.create<HardsigmoidBackwardOp>(grad, getSelf()))
UNARY(MishOp, b.create<MishBackwardOp>(grad, getSelf()))
UNARY(LeakyReluOp,
      b.create<LeakyReluBackwardOp>(grad, getSelf(), getNegativeSlope()))
UNARY(EluOp, b.create<EluBackwardOp>(grad, getSelf(), getAlpha(), getScale(),
                                     getInputScale()))
UNARY(SoftplusOp,
      b.create<SoftplusBackwardOp>(grad, getSelf(), getBeta(), getThreshold()))
UNARY(HardtanhOp,
      b.create<HardtanhBackwardOp>(grad, getSelf(), getMinVal(), getMaxVal()))

BACKWARD(ErfOp) {
  // M_2_SQRTPI * exp(-(self.pow(2))) * grad
  Value square = b.create<PowTensorScalarOp>(getSelf(), int64_t(2));
  Value bell = b.create<ExpOp>(b.create<NegOp>(square));
  operandGrads[0] =
      b.create<MulTensorOp>(b.create<MulScalarOp>(bell, M_2_SQRTPI), grads[0]);
  return success();
}

//===----------------------------------------------------------------------===//
// Bounds, masks, powers
//===----------------------------------------------------------------------===//

/// Zeros where the mask holds.
static Value maskOut(BackwardBuilder &b, Value grad, Value mask) {
  return b.create<MaskedFillScalarOp>(
      grad, mask, cast<TypedAttr>(b.getBuilder().getI64IntegerAttr(0)));
}

/// The larger (or smaller) operand takes the gradient; equal ones half each.
template <typename OpT, typename LosesFirst, typename LosesSecond>
static LogicalResult extremeBackward(OpT op, BackwardBuilder &b, Value grad,
                                     ArrayRef<bool> needed,
                                     MutableArrayRef<Value> operandGrads) {
  Value self = op.getSelf(), other = op.getOther();
  Value equal = b.create<EqTensorOp>(self, other);
  Value half = b.create<DivScalarOp>(grad, int64_t(2));
  Value shared = b.create<WhereSelfOp>(equal, half, grad);
  if (needed[0])
    operandGrads[0] = b.sumTo(
        maskOut(b, shared, b.create<LosesFirst>(self, other)), self.getType());
  if (needed[1])
    operandGrads[1] =
        b.sumTo(maskOut(b, shared, b.create<LosesSecond>(self, other)),
                other.getType());
  return success();
}

BACKWARD(MaximumOp) {
  return extremeBackward<MaximumOp, LtTensorOp, GtTensorOp>(
      *this, b, grads[0], needed, operandGrads);
}
BACKWARD(MinimumOp) {
  return extremeBackward<MinimumOp, GtTensorOp, LtTensorOp>(
      *this, b, grads[0], needed, operandGrads);
}

BACKWARD(ClampOp) {
  // where(self >= min & self <= max, grad, 0)
  Value inside;
  if (auto min = getMin())
    inside = b.create<GeScalarOp>(getSelf(), *min);
  if (auto max = getMax()) {
    Value below = b.create<LeScalarOp>(getSelf(), *max);
    inside = inside ? b.create<LogicalAndOp>(inside, below) : below;
  }
  Value zeros = b.create<ZerosLikeOp>(grads[0]);
  operandGrads[0] = b.sumTo(b.create<WhereSelfOp>(inside, grads[0], zeros),
                            getSelf().getType());
  return success();
}

BACKWARD(MaskedFillScalarOp) {
  if (needed[0])
    operandGrads[0] =
        b.sumTo(maskOut(b, grads[0], getMask()), getSelf().getType());
  return success();
}

BACKWARD(MaskedFillTensorOp) {
  if (needed[0])
    operandGrads[0] =
        b.sumTo(maskOut(b, grads[0], getMask()), getSelf().getType());
  if (needed[2])
    operandGrads[2] =
        b.sumTo(b.create<WhereSelfOp>(getMask(), grads[0],
                                      b.create<ZerosLikeOp>(grads[0])),
                getValue().getType());
  return success();
}

BACKWARD(PowTensorTensorOp) {
  auto zero = cast<TypedAttr>(b.getBuilder().getF64FloatAttr(0.0));
  if (needed[0]) {
    // where(exponent == 0, 0, grad * (exponent * self.pow(exponent - 1)))
    Value lower = b.create<SubScalarOp>(getOther(), int64_t(1));
    Value power = b.create<PowTensorTensorOp>(getSelf(), lower);
    Value slope = b.create<MulTensorOp>(
        grads[0], b.create<MulTensorOp>(getOther(), power));
    Value flat = b.create<EqScalarOp>(getOther(), zero);
    operandGrads[0] = b.sumTo(
        b.create<WhereSelfOp>(flat, b.create<ZerosLikeOp>(slope), slope),
        getSelf().getType());
  }
  if (needed[1]) {
    // grad * where(self == 0 & exponent >= 0, 0, result * log(self))
    Value baseIsZero = b.create<EqScalarOp>(getSelf(), zero);
    Value notNegative = b.create<GeScalarOp>(getOther(), zero);
    Value flat = b.create<LogicalAndOp>(baseIsZero, notNegative);
    Value base = getSelf();
    if (!isa<FloatType>(elementOf(base)))
      base = b.create<ToCopyOp>(base, elementOf(getResult()));
    Value slope = b.create<MulTensorOp>(getResult(), b.create<LogOp>(base));
    Value kept =
        b.create<WhereSelfOp>(flat, b.create<ZerosLikeOp>(slope), slope);
    operandGrads[1] =
        b.sumTo(b.create<MulTensorOp>(grads[0], kept), getOther().getType());
  }
  return success();
}

NO_SLOPE(DivTensorModeOp)
