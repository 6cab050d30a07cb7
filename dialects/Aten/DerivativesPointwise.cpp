//===- DerivativesPointwise.cpp - Derivatives, element-wise -----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Each rule follows PyTorch's derivatives.yaml and FunctionsManual.cpp operator
// by operator, so that fp32 gradients are bit-equal to autograd's.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Eager.h"
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

UNARY(NegOp, b.create<NegOp>(grad))
UNARY(CosOp,
      b.create<MulTensorOp>(grad, b.create<NegOp>(b.create<SinOp>(getSelf()))))
UNARY(SinOp, b.create<MulTensorOp>(grad, b.create<CosOp>(getSelf())))
UNARY(ExpOp, b.create<MulTensorOp>(grad, getResult()))
UNARY(SqrtOp,
      b.create<DivTensorOp>(grad, b.create<MulScalarOp>(getResult(), 2.0)))
UNARY(SiluOp, b.create<SiluBackwardOp>(grad, getSelf()))
UNARY(TanhOp, b.create<TanhBackwardOp>(grad, getResult()))
UNARY(ReluOp, b.create<ThresholdBackwardOp>(grad, getResult()))
UNARY(GeluOp, b.create<GeluBackwardOp>(grad, getSelf(), getApproximate()))
UNARY(CloneOp, grad)
UNARY(ToCopyOp, grad)
UNARY(AddScalarOp, grad)
UNARY(SubScalarOp, grad)
UNARY(RsubScalarOp, b.create<NegOp>(grad))
UNARY(MulScalarOp, b.create<MulScalarOp>(grad, getOther()))
UNARY(DivScalarOp, b.create<DivScalarOp>(grad, getOther()))

BACKWARD(RsqrtOp) {
  Value scaled = b.create<MulScalarOp>(grads[0], -0.5);
  Value cube = b.create<PowTensorScalarOp>(getResult(), int64_t(3));
  operandGrads[0] = b.create<MulTensorOp>(scaled, cube);
  return success();
}

BACKWARD(ReciprocalOp) {
  Value negated = b.create<NegOp>(grads[0]);
  Value square = b.create<MulTensorOp>(getResult(), getResult());
  operandGrads[0] = b.create<MulTensorOp>(negated, square);
  return success();
}

static double toDouble(TypedAttr number) {
  if (auto integer = dyn_cast<IntegerAttr>(number))
    return static_cast<double>(integer.getInt());
  return cast<FloatAttr>(number).getValueAsDouble();
}

BACKWARD(PowTensorScalarOp) {
  double exponent = toDouble(getOther());
  if (exponent == 0.0) {
    operandGrads[0] = b.create<ZerosLikeOp>(getSelf());
    return success();
  }
  // grad * (exponent * self.pow(exponent - 1)); the power 1 is self, exactly.
  Value power = getSelf();
  if (exponent != 2.0)
    power = b.create<PowTensorScalarOp>(getSelf(), exponent - 1.0);
  Value slope = b.create<MulScalarOp>(power, exponent);
  operandGrads[0] =
      b.sumTo(b.create<MulTensorOp>(grads[0], slope), getSelf().getType());
  return success();
}

BACKWARD(PowScalarOp) {
  double base = toDouble(getOther());
  if (base <= 0.0)
    return emitOpError("has no derivative for the base ") << base;
  Value slope = b.create<MulScalarOp>(getResult(), std::log(base));
  operandGrads[0] =
      b.sumTo(b.create<MulTensorOp>(grads[0], slope), getSelf().getType());
  return success();
}

//===----------------------------------------------------------------------===//
// Two operands
//===----------------------------------------------------------------------===//

BACKWARD(TypeAsOp) {
  if (needed[0])
    operandGrads[0] = b.sumTo(grads[0], getSelf().getType());
  return success();
}

BACKWARD(AddTensorOp) {
  for (unsigned i = 0; i < 2; ++i)
    if (needed[i])
      operandGrads[i] = b.sumTo(grads[0], getOperand(i).getType());
  return success();
}

BACKWARD(SubTensorOp) {
  if (needed[0])
    operandGrads[0] = b.sumTo(grads[0], getSelf().getType());
  if (needed[1])
    operandGrads[1] = b.sumTo(b.create<NegOp>(grads[0]), getOther().getType());
  return success();
}

BACKWARD(MulTensorOp) {
  if ((*this)->hasAttr(autogradOrderAttr)) {
    if (needed[1])
      operandGrads[1] = b.create<MulTensorOp>(grads[0], getSelf());
    if (needed[0])
      operandGrads[0] = b.create<MulTensorOp>(grads[0], getOther());
    for (auto [grad, operand] : llvm::zip(operandGrads, getOperands()))
      if (grad)
        grad = b.sumTo(grad, operand.getType());
    return success();
  }
  if (needed[0])
    operandGrads[0] = b.sumTo(b.create<MulTensorOp>(grads[0], getOther()),
                              getSelf().getType());
  if (needed[1])
    operandGrads[1] = b.sumTo(b.create<MulTensorOp>(grads[0], getSelf()),
                              getOther().getType());
  return success();
}

BACKWARD(DivTensorOp) {
  if (needed[0])
    operandGrads[0] = b.sumTo(b.create<DivTensorOp>(grads[0], getOther()),
                              getSelf().getType());
  if (needed[1]) {
    Value quotient = b.create<DivTensorOp>(
        b.create<DivTensorOp>(getSelf(), getOther()), getOther());
    Value negated = b.create<NegOp>(grads[0]);
    operandGrads[1] =
        b.sumTo(b.create<MulTensorOp>(negated, quotient), getOther().getType());
  }
  return success();
}

BACKWARD(WhereSelfOp) {
  Value zeros = b.create<ZerosLikeOp>(grads[0]);
  if (needed[1])
    operandGrads[1] =
        b.sumTo(b.create<WhereSelfOp>(getCondition(), grads[0], zeros),
                getSelf().getType());
  if (needed[2])
    operandGrads[2] =
        b.sumTo(b.create<WhereSelfOp>(getCondition(), zeros, grads[0]),
                getOther().getType());
  return success();
}
