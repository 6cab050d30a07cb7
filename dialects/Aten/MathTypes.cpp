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

#define VERIFY_NUMBERS(OP)                                                     \
  LogicalResult OP::verify() {                                                 \
    if (getType().getElementType().isInteger(1))                               \
      return emitOpError("expects numbers, got ") << getType();                \
    return success();                                                          \
  }
VERIFY_NUMBERS(AbsOp)
VERIFY_NUMBERS(FloorOp)
VERIFY_NUMBERS(CeilOp)
VERIFY_NUMBERS(RoundOp)
VERIFY_NUMBERS(TruncOp)

/// log_sigmoid keeps exp(-|x|) for its own derivative.
int64_t LogSigmoidOp::getWorkspaceBytes(Device device) {
  return device == Device::Cpu ? alignedBytes(tensorBytes(getType())) : 0;
}
Strides LogSigmoidOp::getStrides(LayoutAnalysis &, unsigned) {
  return Strides(contiguousStrides(shapeOf(getResult())));
}

INFER(GluOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  int64_t dim = adaptor.getDim();
  if (failed(checkDim(loc, dim, self.getRank())))
    return failure();
  SmallVector<int64_t> shape(self.getShape());
  if (shape[dim] % 2)
    return emitOptionalError(loc, "dimension ", dim, " of ", self,
                             " has no two halves");
  shape[dim] /= 2;
  results.push_back(self.clone(shape));
  return success();
}
INFER(GluBackwardOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  RankedTensorType grad = tensorType(adaptor.getGradOutput());
  int64_t dim = adaptor.getDim();
  if (failed(checkDim(loc, dim, self.getRank())))
    return failure();
  SmallVector<int64_t> shape(self.getShape());
  shape[dim] /= 2;
  if (self.getDimSize(dim) % 2 || grad != self.clone(shape))
    return emitOptionalError(loc, "gradient ", grad, " is no half of ", self);
  results.push_back(self);
  return success();
}

/// Both halves have the input's strides.
Strides GluOp::getStrides(LayoutAnalysis &layout, unsigned) {
  return LayoutAnalysis::iteratorStrides(shapeOf(getResult()),
                                         layout.strides(getSelf()));
}
Strides GluBackwardOp::getStrides(LayoutAnalysis &, unsigned) {
  return Strides(contiguousStrides(shapeOf(getSelf())));
}

/// Fails unless the weight has the type of x and broadcasts to it.
static LogicalResult checkPrelu(std::optional<Location> loc, Value x,
                                Value weight) {
  RankedTensorType self = tensorType(x), slope = tensorType(weight);
  auto shape = broadcastShapes({self.getShape(), slope.getShape()});
  if (!shape || ArrayRef<int64_t>(*shape) != self.getShape() ||
      self.getElementType() != slope.getElementType())
    return emitOptionalError(loc, "weight ", slope, " does not fit ", self);
  return success();
}
INFER(PreluKernelOp) {
  if (failed(checkPrelu(loc, adaptor.getSelf(), adaptor.getWeight())))
    return failure();
  results.push_back(adaptor.getSelf().getType());
  return success();
}
INFER(PreluKernelBackwardOp) {
  if (failed(checkPrelu(loc, adaptor.getSelf(), adaptor.getWeight())))
    return failure();
  Type self = adaptor.getSelf().getType();
  if (adaptor.getGradOutput().getType() != self)
    return emitOptionalError(loc, "gradient ",
                             adaptor.getGradOutput().getType(),
                             " is not of the input's type ", self);
  results.append({self, self});
  return success();
}

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
INFER(Atan2Op) {
  Type type = promoteTypes(
      {tensorType(adaptor.getSelf()), tensorType(adaptor.getOther())});
  if (!isa<FloatType>(type))
    type = Float32Type::get(context);
  return inferBroadcast(loc, adaptor.getOperands(), type, results);
}

#define INFER_REST(OP)                                                         \
  INFER(OP) {                                                                  \
    Type type = promoteTypes(                                                  \
        {tensorType(adaptor.getSelf()), tensorType(adaptor.getOther())});      \
    if (type.isInteger(1))                                                     \
      return emitOptionalError(loc, "does not divide truth values");           \
    return inferBroadcast(loc, adaptor.getOperands(), type, results);          \
  }
INFER_REST(RemainderTensorOp)
INFER_REST(FmodTensorOp)

#define INFER_REST_SCALAR(OP)                                                  \
  INFER(OP) {                                                                  \
    RankedTensorType self = tensorType(adaptor.getSelf());                     \
    results.push_back(                                                         \
        self.clone(promoteTypes({self}, adaptor.getOther().getType())));       \
    return success();                                                          \
  }                                                                            \
  int64_t OP::getWorkspaceBytes(Device) { return 2 * 64; }
INFER_REST_SCALAR(RemainderScalarOp)
INFER_REST_SCALAR(FmodScalarOp)

/// Three operands of one element type.
static LogicalResult inferTernary(std::optional<Location> loc,
                                  ValueRange operands,
                                  SmallVectorImpl<Type> &results) {
  Type type = elementOf(operands[0]);
  for (Value operand : operands)
    if (elementOf(operand) != type)
      return emitOptionalError(loc, "operand ", operand.getType(),
                               " is not of the input's type ",
                               operands[0].getType());
  return inferBroadcast(loc, operands, type, results);
}
#define INFER_TERNARY(OP)                                                      \
  INFER(OP) { return inferTernary(loc, adaptor.getOperands(), results); }      \
  int64_t OP::getWorkspaceBytes(Device) { return 0; }
INFER_TERNARY(AddcmulOp)
INFER_TERNARY(AddcdivOp)
INFER_TERNARY(LerpTensorOp)
INFER_TERNARY(LerpScalarOp)

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
