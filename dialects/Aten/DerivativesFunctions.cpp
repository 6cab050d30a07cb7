//===- DerivativesFunctions.cpp - Derivatives of further functions --------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// As derivatives.yaml and FunctionsManual.cpp of PyTorch, operator by operator.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Rules.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::aten;

#define UNARY(OP, EXPR)                                                        \
  BACKWARD(OP) {                                                               \
    Value grad = grads[0], self = getSelf();                                   \
    operandGrads[0] = b.sumTo(EXPR, self.getType());                           \
    return success();                                                          \
  }

//===----------------------------------------------------------------------===//
// One operand
//===----------------------------------------------------------------------===//

static Value squared(BackwardBuilder &b, Value x) {
  return b.create<PowTensorScalarOp>(x, int64_t(2));
}

/// 1 / sqrt(1 - x x).
static Value arcSlope(BackwardBuilder &b, Value x) {
  Value square = b.create<MulTensorOp>(b.create<NegOp>(x), x);
  return b.create<RsqrtOp>(b.create<AddScalarOp>(square, int64_t(1)));
}

UNARY(ErfcOp,
      b.create<MulTensorOp>(
          b.create<MulScalarOp>(
              b.create<ExpOp>(b.create<NegOp>(squared(b, self))), -M_2_SQRTPI),
          grad))
UNARY(AsinOp, b.create<MulTensorOp>(grad, arcSlope(b, self)))
UNARY(AcosOp, b.create<MulTensorOp>(grad, b.create<NegOp>(arcSlope(b, self))))
UNARY(AsinhOp,
      b.create<MulTensorOp>(grad, b.create<RsqrtOp>(b.create<AddScalarOp>(
                                      squared(b, self), int64_t(1)))))
UNARY(AcoshOp,
      b.create<MulTensorOp>(grad, b.create<RsqrtOp>(b.create<SubScalarOp>(
                                      squared(b, self), int64_t(1)))))
UNARY(AtanhOp,
      b.create<DivTensorOp>(grad, b.create<RsubScalarOp>(squared(b, self),
                                                         int64_t(1))))

// PyTorch reads exp(-|x|) again, which its forward kept. This keeps x alone.
UNARY(LogSigmoidOp,
      b.create<MulTensorOp>(grad, b.create<SigmoidOp>(b.create<NegOp>(self))))

BACKWARD(GluOp) {
  operandGrads[0] = b.create<GluBackwardOp>(grads[0], getSelf(), getDim());
  return success();
}

BACKWARD(PreluKernelOp) {
  auto backward =
      b.createOp<PreluKernelBackwardOp>(grads[0], getSelf(), getWeight());
  if (needed[0])
    operandGrads[0] = backward.getGradSelf();
  if (needed[1])
    operandGrads[1] = b.sumTo(backward.getGradWeight(), getWeight().getType());
  return success();
}

//===----------------------------------------------------------------------===//
// Two operands
//===----------------------------------------------------------------------===//

BACKWARD(Atan2Op) {
  Value self = getSelf(), other = getOther();
  Value square = b.create<MulTensorOp>(self, self);
  Value otherSquare = b.create<MulTensorOp>(other, other);
  Value scale =
      b.create<ReciprocalOp>(b.create<AddTensorOp>(square, otherSquare));
  if (needed[0])
    operandGrads[0] = b.sumTo(
        b.create<MulTensorOp>(b.create<MulTensorOp>(grads[0], other), scale),
        self.getType());
  if (needed[1])
    operandGrads[1] = b.sumTo(
        b.create<MulTensorOp>(
            b.create<MulTensorOp>(grads[0], b.create<NegOp>(self)), scale),
        other.getType());
  return success();
}

/// a - b round(a / b): the rounded quotient is a constant of b.
template <typename OpT>
static LogicalResult restBackward(OpT op, BackwardBuilder &b, Value grad,
                                  ArrayRef<bool> needed, StringRef rounding,
                                  MutableArrayRef<Value> operandGrads) {
  if (needed[0])
    operandGrads[0] = b.sumTo(grad, op.getSelf().getType());
  if (needed[1]) {
    Value negative = b.create<NegOp>(grad);
    Value quotient =
        b.create<DivTensorModeOp>(op.getSelf(), op.getOther(), rounding);
    operandGrads[1] = b.sumTo(b.create<MulTensorOp>(negative, quotient),
                              op.getOther().getType());
  }
  return success();
}
BACKWARD(RemainderTensorOp) {
  return restBackward(*this, b, grads[0], needed, "floor", operandGrads);
}
BACKWARD(FmodTensorOp) {
  return restBackward(*this, b, grads[0], needed, "trunc", operandGrads);
}
UNARY(RemainderScalarOp, grad)
UNARY(FmodScalarOp, grad)

//===----------------------------------------------------------------------===//
// Three operands
//===----------------------------------------------------------------------===//

BACKWARD(AddcmulOp) {
  double value = getValue().convertToDouble();
  Value grad = grads[0];
  auto times = [&](Value other) -> Value {
    return b.create<MulTensorOp>(grad, b.create<MulScalarOp>(other, value));
  };
  if (needed[0])
    operandGrads[0] = b.sumTo(grad, getSelf().getType());
  if (needed[1])
    operandGrads[1] = b.sumTo(times(getTensor2()), getTensor1().getType());
  if (needed[2])
    operandGrads[2] = b.sumTo(times(getTensor1()), getTensor2().getType());
  return success();
}

BACKWARD(AddcdivOp) {
  double value = getValue().convertToDouble();
  Value grad = grads[0], below = getTensor2();
  if (needed[0])
    operandGrads[0] = b.sumTo(grad, getSelf().getType());
  if (needed[1]) {
    Value slope = b.create<MulScalarOp>(b.create<ReciprocalOp>(below), value);
    operandGrads[1] =
        b.sumTo(b.create<MulTensorOp>(grad, slope), getTensor1().getType());
  }
  if (needed[2]) {
    Value above = b.create<MulScalarOp>(getTensor1(), value);
    Value slope =
        b.create<DivTensorOp>(above, b.create<MulTensorOp>(below, below));
    operandGrads[2] = b.sumTo(
        b.create<MulTensorOp>(b.create<NegOp>(grad), slope), below.getType());
  }
  return success();
}

BACKWARD(LerpTensorOp) {
  Value grad = grads[0], weight = getWeight();
  if (needed[0]) {
    Value rest = b.create<RsubScalarOp>(weight, int64_t(1));
    operandGrads[0] =
        b.sumTo(b.create<MulTensorOp>(grad, rest), getSelf().getType());
  }
  if (needed[1])
    operandGrads[1] =
        b.sumTo(b.create<MulTensorOp>(grad, weight), getEnd().getType());
  if (needed[2]) {
    Value way = b.create<SubTensorOp>(getEnd(), getSelf());
    operandGrads[2] =
        b.sumTo(b.create<MulTensorOp>(grad, way), weight.getType());
  }
  return success();
}

BACKWARD(LerpScalarOp) {
  double weight = getWeight().convertToDouble();
  if (needed[0])
    operandGrads[0] = b.sumTo(b.create<MulScalarOp>(grads[0], 1.0 - weight),
                              getSelf().getType());
  if (needed[1])
    operandGrads[1] =
        b.sumTo(b.create<MulScalarOp>(grads[0], weight), getEnd().getType());
  return success();
}
