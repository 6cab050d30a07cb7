//===- Types.cpp - PyTorch's shape and type rules ---------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Rules.h"

#include "dialects/Aten/Aten.h"

using namespace mlir;
using namespace accel;
using namespace accel::aten;

std::optional<SmallVector<int64_t>>
aten::broadcastShapes(ArrayRef<ArrayRef<int64_t>> shapes) {
  size_t rank = 0;
  for (ArrayRef<int64_t> shape : shapes)
    rank = std::max(rank, shape.size());
  SmallVector<int64_t> result(rank, 1);
  for (ArrayRef<int64_t> shape : shapes)
    for (size_t i = 0; i < shape.size(); ++i) {
      int64_t &size = result[rank - shape.size() + i];
      if (size != shape[i] && size != 1 && shape[i] != 1)
        return std::nullopt;
      if (size == 1)
        size = shape[i];
    }
  return result;
}

SmallVector<int64_t> aten::contiguousStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t i = static_cast<int64_t>(shape.size()) - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * std::max<int64_t>(shape[i + 1], 1);
  return strides;
}

/// 0: truth value, 1: integer, 2: floating point.
static int categoryOf(Type type) {
  if (isa<FloatType>(type))
    return 2;
  return type.isInteger(1) ? 0 : 1;
}

/// The smaller type that holds both.
static Type widen(Type a, Type b) {
  if (a == b)
    return a;
  if (categoryOf(a) != categoryOf(b))
    return categoryOf(a) > categoryOf(b) ? a : b;
  if (categoryOf(a) == 2) {
    if (a.getIntOrFloatBitWidth() == b.getIntOrFloatBitWidth())
      return Float32Type::get(a.getContext()); // bf16 with fp16
  } else if (a.isUnsignedInteger() != b.isUnsignedInteger() &&
             a.getIntOrFloatBitWidth() == b.getIntOrFloatBitWidth()) {
    return IntegerType::get(a.getContext(), 16); // uint8 with int8
  }
  return a.getIntOrFloatBitWidth() > b.getIntOrFloatBitWidth() ? a : b;
}

Type aten::promoteTypes(ArrayRef<RankedTensorType> types, Type scalar) {
  Type dims, zeroDims;
  for (RankedTensorType type : types) {
    Type &slot = type.getRank() ? dims : zeroDims;
    slot = slot ? widen(slot, type.getElementType()) : type.getElementType();
  }
  if (scalar) // Python numbers become the default type of their category
    scalar = isa<FloatType>(scalar)
                 ? Type(Float32Type::get(scalar.getContext()))
                 : Type(IntegerType::get(scalar.getContext(), 64));
  Type result = dims;
  for (Type next : {zeroDims, scalar})
    if (next && (!result || categoryOf(next) > categoryOf(result)))
      result = next;
  return result;
}

//===----------------------------------------------------------------------===//
// Pointwise operations
//===----------------------------------------------------------------------===//

LogicalResult aten::inferBroadcast(std::optional<Location> loc,
                                   ValueRange operands, Type elementType,
                                   SmallVectorImpl<Type> &results) {
  SmallVector<ArrayRef<int64_t>> shapes;
  for (Value operand : operands)
    shapes.push_back(cast<RankedTensorType>(operand.getType()).getShape());
  auto shape = broadcastShapes(shapes);
  if (!shape) {
    auto diag = emitOptionalError(
        loc, "shapes do not broadcast: ", operands[0].getType(), " and ",
        operands.back().getType());
    return diag;
  }
  results.push_back(RankedTensorType::get(*shape, elementType));
  return success();
}

#define INFER_BINARY(OP)                                                       \
  INFER(OP) {                                                                  \
    Type type = promoteTypes(                                                  \
        {tensorType(adaptor.getSelf()), tensorType(adaptor.getOther())});      \
    return inferBroadcast(loc, adaptor.getOperands(), type, results);          \
  }
INFER_BINARY(AddTensorOp)
INFER_BINARY(MulTensorOp)

/// PyTorch has no minus for truth values.
static LogicalResult checkNumbers(std::optional<Location> loc, Value value) {
  if (!tensorType(value).getElementType().isInteger(1))
    return success();
  return emitOptionalError(loc, "cannot subtract truth values, got ",
                           value.getType());
}

INFER(SubTensorOp) {
  if (failed(checkNumbers(loc, adaptor.getSelf())) ||
      failed(checkNumbers(loc, adaptor.getOther())))
    return failure();
  Type type = promoteTypes(
      {tensorType(adaptor.getSelf()), tensorType(adaptor.getOther())});
  return inferBroadcast(loc, adaptor.getOperands(), type, results);
}

INFER(DivTensorOp) {
  Type type = promoteTypes(
      {tensorType(adaptor.getSelf()), tensorType(adaptor.getOther())});
  if (!isa<FloatType>(type))
    type = Float32Type::get(context);
  return inferBroadcast(loc, adaptor.getOperands(), type, results);
}

INFER(BitwiseAndTensorOp) {
  Type type = promoteTypes(
      {tensorType(adaptor.getSelf()), tensorType(adaptor.getOther())});
  if (isa<FloatType>(type))
    return emitOptionalError(loc, "expects integers or truth values, got ",
                             type);
  return inferBroadcast(loc, adaptor.getOperands(), type, results);
}

INFER(LogicalAndOp) {
  return inferBroadcast(loc, adaptor.getOperands(),
                        IntegerType::get(context, 1), results);
}

#define INFER_SCALAR(OP, ...)                                                  \
  INFER(OP) {                                                                  \
    RankedTensorType self = tensorType(adaptor.getSelf());                     \
    Type type = promoteTypes({self}, adaptor.getOther().getType());            \
    __VA_ARGS__                                                                \
    results.push_back(self.clone(type));                                       \
    return success();                                                          \
  }
INFER_SCALAR(AddScalarOp)
INFER_SCALAR(
    SubScalarOp,
    if (failed(checkNumbers(loc, adaptor.getSelf()))) { return failure(); })
INFER_SCALAR(
    RsubScalarOp,
    if (failed(checkNumbers(loc, adaptor.getSelf()))) { return failure(); })
INFER_SCALAR(MulScalarOp)
INFER_SCALAR(PowTensorScalarOp)
INFER_SCALAR(PowScalarOp)
INFER_SCALAR(DivScalarOp,
             if (!isa<FloatType>(type)) type = Float32Type::get(context);)
INFER_SCALAR(GtScalarOp, type = IntegerType::get(context, 1);)
INFER_SCALAR(LtScalarOp, type = IntegerType::get(context, 1);)

INFER(WhereSelfOp) {
  Type type = promoteTypes(
      {tensorType(adaptor.getSelf()), tensorType(adaptor.getOther())});
  return inferBroadcast(loc, adaptor.getOperands(), type, results);
}

bool aten::isElementType(Type type) {
  return type.isF64() || type.isF32() || type.isF16() || type.isBF16() ||
         type.isSignlessInteger(64) || type.isSignlessInteger(32) ||
         type.isSignlessInteger(16) || type.isSignlessInteger(1) ||
         type.isUnsignedInteger(8);
}

INFER(ToCopyOp) {
  if (!isElementType(adaptor.getDtype()))
    return emitOptionalError(loc, "cannot cast to ", adaptor.getDtype());
  results.push_back(tensorType(adaptor.getSelf()).clone(adaptor.getDtype()));
  return success();
}

INFER(TypeAsOp) {
  results.push_back(
      tensorType(adaptor.getSelf())
          .clone(tensorType(adaptor.getOther()).getElementType()));
  return success();
}

INFER(ArangeOp) {
  int64_t start = adaptor.getStart(), end = adaptor.getEnd();
  int64_t step = adaptor.getStep();
  if (step < 1 || end < start)
    return emitOptionalError(loc, "expects start <= end and a positive step");
  if (!isElementType(adaptor.getDtype()) || adaptor.getDtype().isInteger(1))
    return emitOptionalError(loc, "cannot count in ", adaptor.getDtype());
  int64_t size = (end - start + step - 1) / step;
  results.push_back(RankedTensorType::get({size}, adaptor.getDtype()));
  return success();
}

LogicalResult BitwiseNotOp::verify() {
  if (isa<FloatType>(getType().getElementType()))
    return emitOpError("expects integers or truth values, got ") << getType();
  return success();
}
