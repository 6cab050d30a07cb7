//===- MathTypes.cpp - Comparisons, functions, masks, constants -*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Rules.h"

using namespace mlir;
using namespace accel;
using namespace accel::aten;

//===----------------------------------------------------------------------===//
// Comparisons and logic
//===----------------------------------------------------------------------===//

#define INFER_TRUTH(OP)                                                        \
  INFER(OP) {                                                                  \
    return inferBroadcast(loc, adaptor.getOperands(),                          \
                          IntegerType::get(context, 1), results);              \
  }
INFER_TRUTH(EqTensorOp)
INFER_TRUTH(NeTensorOp)
INFER_TRUTH(GeTensorOp)
INFER_TRUTH(LeTensorOp)
INFER_TRUTH(GtTensorOp)
INFER_TRUTH(LtTensorOp)
INFER_TRUTH(LogicalOrOp)
INFER_TRUTH(LogicalXorOp)
INFER_TRUTH(EqScalarOp)
INFER_TRUTH(NeScalarOp)
INFER_TRUTH(GeScalarOp)
INFER_TRUTH(LeScalarOp)
INFER_TRUTH(LogicalNotOp)
INFER_TRUTH(IsnanOp)
INFER_TRUTH(IsinfOp)

#define INFER_BITS(OP)                                                         \
  INFER(OP) {                                                                  \
    Type type = promoteTypes(                                                  \
        {tensorType(adaptor.getSelf()), tensorType(adaptor.getOther())});      \
    if (isa<FloatType>(type))                                                  \
      return emitOptionalError(loc, "expects integers or truth values, got ",  \
                               type);                                          \
    return inferBroadcast(loc, adaptor.getOperands(), type, results);          \
  }
INFER_BITS(BitwiseOrTensorOp)
INFER_BITS(BitwiseXorTensorOp)

/// Operands of another type than they are compared in are cast first.
static int64_t comparisonWorkspace(Value self, Value other, Device device) {
  if (device != Device::Cpu)
    return 0;
  Type common = promoteTypes({tensorType(self), tensorType(other)});
  int64_t bytes = 0;
  for (Value operand : {self, other})
    if (elementOf(operand) != common)
      bytes += alignedBytes(tensorBytes(tensorType(operand).clone(common)));
  return bytes;
}
#define COMPARISON_WORKSPACE(OP)                                               \
  int64_t OP::getWorkspaceBytes(Device device) {                               \
    return comparisonWorkspace(getSelf(), getOther(), device);                 \
  }
COMPARISON_WORKSPACE(EqTensorOp)
COMPARISON_WORKSPACE(NeTensorOp)
COMPARISON_WORKSPACE(GeTensorOp)
COMPARISON_WORKSPACE(LeTensorOp)
COMPARISON_WORKSPACE(GtTensorOp)
COMPARISON_WORKSPACE(LtTensorOp)
COMPARISON_WORKSPACE(LogicalOrOp)
COMPARISON_WORKSPACE(LogicalXorOp)

// The number becomes a 0-d tensor of 64 bits and is cast (Cost.cpp).
#define SCALAR_WORKSPACE(OP)                                                   \
  int64_t OP::getWorkspaceBytes(Device) { return 2 * 64; }
SCALAR_WORKSPACE(EqScalarOp)
SCALAR_WORKSPACE(NeScalarOp)
SCALAR_WORKSPACE(GeScalarOp)
SCALAR_WORKSPACE(LeScalarOp)

int64_t LogicalNotOp::getWorkspaceBytes(Device) { return 0; }

/// x != x.
int64_t IsnanOp::getWorkspaceBytes(Device) { return 0; }

/// |x| == inf.
int64_t IsinfOp::getWorkspaceBytes(Device) {
  return isa<FloatType>(elementOf(getSelf()))
             ? alignedBytes(tensorBytes(getSelf().getType())) + 2 * 64
             : 0;
}

//===----------------------------------------------------------------------===//
// Functions of one tensor
//===----------------------------------------------------------------------===//

#define INFER_SAME(OP)                                                         \
  INFER(OP) {                                                                  \
    results.push_back(adaptor.getSelf().getType());                            \
    return success();                                                          \
  }
INFER_SAME(LeakyReluOp)
INFER_SAME(EluOp)
INFER_SAME(SoftplusOp)

INFER(HardtanhOp) {
  results.push_back(adaptor.getSelf().getType());
  return success();
}

#define INFER_ACTIVATION_GRAD(OP)                                              \
  INFER(OP) {                                                                  \
    if (adaptor.getGradOutput().getType() != adaptor.getSelf().getType())      \
      return emitOptionalError(                                                \
          loc, "gradient ", adaptor.getGradOutput().getType(),                 \
          " is not of the input's type ", adaptor.getSelf().getType());        \
    results.push_back(adaptor.getSelf().getType());                            \
    return success();                                                          \
  }
INFER_ACTIVATION_GRAD(LeakyReluBackwardOp)
INFER_ACTIVATION_GRAD(EluBackwardOp)
INFER_ACTIVATION_GRAD(SoftplusBackwardOp)
INFER_ACTIVATION_GRAD(HardtanhBackwardOp)

//===----------------------------------------------------------------------===//
// Bounds, masks, powers
//===----------------------------------------------------------------------===//

#define INFER_PROMOTED(OP)                                                     \
  INFER(OP) {                                                                  \
    Type type = promoteTypes(                                                  \
        {tensorType(adaptor.getSelf()), tensorType(adaptor.getOther())});      \
    return inferBroadcast(loc, adaptor.getOperands(), type, results);          \
  }
INFER_PROMOTED(MaximumOp)
INFER_PROMOTED(MinimumOp)

INFER(PowTensorTensorOp) {
  Type type = promoteTypes(
      {tensorType(adaptor.getSelf()), tensorType(adaptor.getOther())});
  if (type.isInteger(1))
    return emitOptionalError(loc, "has no powers of truth values");
  return inferBroadcast(loc, adaptor.getOperands(), type, results);
}

INFER(ClampOp) {
  if (!adaptor.getMin() && !adaptor.getMax())
    return emitOptionalError(loc, "expects 'min', 'max' or both");
  RankedTensorType self = tensorType(adaptor.getSelf());
  Type type = self.getElementType();
  if (type.isInteger(1))
    return emitOptionalError(loc, "has no bounds for truth values");
  for (TypedAttr bound : {adaptor.getMin().value_or(TypedAttr()),
                          adaptor.getMax().value_or(TypedAttr())})
    if (bound)
      type = promoteTypes({self.clone(type)}, bound.getType());
  results.push_back(self.clone(type));
  return success();
}

/// Whether an element of `type` can hold the number.
static bool holds(Type type, TypedAttr number) {
  return isa<FloatType>(type) || isa<IntegerAttr>(number);
}

INFER(MaskedFillScalarOp) {
  Type type = elementOf(adaptor.getSelf());
  if (!holds(type, adaptor.getValue()))
    return emitOptionalError(loc, "cannot fill ", type,
                             " with a floating-point number");
  return inferBroadcast(loc, adaptor.getOperands(), type, results);
}

INFER(MaskedFillTensorOp) {
  RankedTensorType value = tensorType(adaptor.getValue());
  if (value.getRank() != 0)
    return emitOptionalError(loc, "expects a value without dimensions, got ",
                             value);
  Type type = elementOf(adaptor.getSelf());
  if (isa<FloatType>(value.getElementType()) && !isa<FloatType>(type))
    return emitOptionalError(loc, "cannot fill ", type, " with ", value);
  return inferBroadcast(loc, {adaptor.getSelf(), adaptor.getMask()}, type,
                        results);
}

// It copies and then fills the copy.
static Strides contiguousResult(Operation *op) {
  return Strides(contiguousStrides(shapeOf(op->getResult(0))));
}
Strides MaskedFillScalarOp::getStrides(LayoutAnalysis &, unsigned) {
  return contiguousResult(*this);
}
Strides MaskedFillTensorOp::getStrides(LayoutAnalysis &, unsigned) {
  return contiguousResult(*this);
}
int64_t MaskedFillScalarOp::getWorkspaceBytes(Device) { return 0; }
int64_t MaskedFillTensorOp::getWorkspaceBytes(Device) { return 0; }

INFER(DivTensorModeOp) {
  if (adaptor.getRoundingMode() != "floor" &&
      adaptor.getRoundingMode() != "trunc")
    return emitOptionalError(loc, "rounds by 'floor' or 'trunc', not '",
                             adaptor.getRoundingMode(), "'");
  Type type = promoteTypes(
      {tensorType(adaptor.getSelf()), tensorType(adaptor.getOther())});
  if (type.isInteger(1))
    return emitOptionalError(loc, "does not divide truth values");
  return inferBroadcast(loc, adaptor.getOperands(), type, results);
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

INFER(FullOp) {
  for (int64_t size : adaptor.getSize())
    if (size < 0)
      return emitOptionalError(loc, "size ", size, " is negative");
  if (!isElementType(adaptor.getDtype()))
    return emitOptionalError(loc, "cannot fill ", adaptor.getDtype());
  if (!holds(adaptor.getDtype(), adaptor.getFillValue()))
    return emitOptionalError(loc, "cannot fill ", adaptor.getDtype(),
                             " with a floating-point number");
  results.push_back(
      RankedTensorType::get(adaptor.getSize(), adaptor.getDtype()));
  return success();
}

INFER(FullLikeOp) {
  if (!isElementType(adaptor.getDtype()))
    return emitOptionalError(loc, "cannot fill ", adaptor.getDtype());
  if (!holds(adaptor.getDtype(), adaptor.getFillValue()))
    return emitOptionalError(loc, "cannot fill ", adaptor.getDtype(),
                             " with a floating-point number");
  results.push_back(tensorType(adaptor.getSelf()).clone(adaptor.getDtype()));
  return success();
}

Strides FullLikeOp::getStrides(LayoutAnalysis &layout, unsigned) {
  return layout.preservedStrides(getSelf());
}
