//===- Fused.cpp - Kernels of libraries and compilers ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Fused.h"

#include "dialects/Aten/Rules.h"

#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace accel;
using namespace accel::aten;

#define GET_OP_CLASSES
#include "dialects/Aten/AtenFused.cpp.inc"

//===----------------------------------------------------------------------===//
// Rotary embedding
//===----------------------------------------------------------------------===//

INFER(RotaryOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  for (Value table : {adaptor.getCos(), adaptor.getSin()})
    if (self.getRank() == 0 || shapeOf(table).empty() ||
        shapeOf(table).back() != self.getShape().back())
      return emitOptionalError(loc, "table ", table.getType(),
                               " does not fit the last dimension of ", self);
  results.push_back(self);
  return success();
}

BACKWARD(RotaryOp) {
  if (needed[1] || needed[2])
    return emitOpError("has no derivative through its tables");
  if (needed[0])
    operandGrads[0] =
        b.create<RotaryOp>(grads[0], getCos(), getSin(), !getInverse());
  return success();
}

//===----------------------------------------------------------------------===//
// SwiGLU
//===----------------------------------------------------------------------===//

BACKWARD(SwigluOp) {
  auto backward = b.createOp<SwigluBackwardOp>(grads[0], getGate(), getUp());
  for (unsigned i = 0; i < 2; ++i)
    if (needed[i])
      operandGrads[i] = backward->getResult(i);
  return success();
}

INFER(SwigluBackwardOp) {
  RankedTensorType gate = tensorType(adaptor.getGate());
  if (adaptor.getGradOut().getType() != gate ||
      adaptor.getUp().getType() != gate)
    return emitOptionalError(loc, "expects tensors of one type, got ",
                             adaptor.getGradOut().getType(), ", ", gate,
                             " and ", adaptor.getUp().getType());
  results.append({gate, gate});
  return success();
}

//===----------------------------------------------------------------------===//
// Cross-entropy
//===----------------------------------------------------------------------===//

static LogicalResult checkRows(std::optional<Location> loc, Value logits,
                               Value targets) {
  ArrayRef<int64_t> rows = shapeOf(logits);
  if (rows.size() != 2 || shapeOf(targets) != rows.take_front(1))
    return emitOptionalError(loc, "targets ", targets.getType(),
                             " do not fit the rows of ", logits.getType());
  return success();
}

INFER(CrossEntropyOp) {
  if (failed(checkRows(loc, adaptor.getLogits(), adaptor.getTargets())))
    return failure();
  Type wide = Float32Type::get(context);
  results.append({RankedTensorType::get({}, wide),
                  RankedTensorType::get(shapeOf(adaptor.getTargets()), wide)});
  return success();
}

BACKWARD(CrossEntropyOp) {
  if (grads[1])
    return emitOpError("has no derivative through its sums");
  if (!grads[0] || !needed[0])
    return success();
  if (getInPlace())
    operandGrads[0] = b.create<CrossEntropyInPlaceBackwardOp>(
        getLogits(), grads[0], getTargets(), getSums(), getIgnoreIndex());
  else
    operandGrads[0] = b.create<CrossEntropyBackwardOp>(
        getLogits(), grads[0], getTargets(), getSums(), getIgnoreIndex());
  return success();
}

template <typename Adaptor>
static LogicalResult inferGradient(std::optional<Location> loc, Adaptor adaptor,
                                   SmallVectorImpl<Type> &results) {
  if (failed(checkRows(loc, adaptor.getLogits(), adaptor.getTargets())))
    return failure();
  results.push_back(adaptor.getLogits().getType());
  return success();
}

INFER(CrossEntropyBackwardOp) { return inferGradient(loc, adaptor, results); }
INFER(CrossEntropyInPlaceBackwardOp) {
  return inferGradient(loc, adaptor, results);
}

/// Each logit is read once and, in the backward, its gradient written.
static Cost lossCost(Value logits, double flops, double passes) {
  RankedTensorType type = tensorType(logits);
  return {flops * double(type.getNumElements()),
          passes * double(tensorBytes(type))};
}

Cost CrossEntropyOp::getCost() { return lossCost(getLogits(), 5, 1); }
Cost CrossEntropyBackwardOp::getCost() { return lossCost(getLogits(), 4, 2); }
Cost CrossEntropyInPlaceBackwardOp::getCost() {
  return lossCost(getLogits(), 4, 2);
}
