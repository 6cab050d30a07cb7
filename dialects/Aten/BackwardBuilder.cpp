//===- BackwardBuilder.cpp - What derivative rules build with ---*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/BackwardBuilder.h"
#include "dialects/Aten/Types.h"

using namespace mlir;
using namespace accel;
using namespace accel::aten;

Value BackwardBuilder::t(Value value) {
  if (auto inner = value.getDefiningOp<TOp>())
    return inner.getSelf();
  return create<TOp>(value);
}

Value BackwardBuilder::reshape(Value value, ArrayRef<int64_t> shape) {
  if (tensorType(value).getShape() == shape)
    return value;
  if (auto inner = value.getDefiningOp<ViewOp>())
    if (tensorType(inner.getSelf()).getShape() == shape)
      return inner.getSelf();
  if (!layout.viewStrides(value, shape))
    value = create<CloneOp>(value);
  return create<ViewOp>(value, shape);
}

Value BackwardBuilder::sumTo(Value grad, Type type) {
  auto target = cast<RankedTensorType>(type);
  ArrayRef<int64_t> from = tensorType(grad).getShape(), to = target.getShape();
  int64_t leading = from.size() - to.size();
  SmallVector<int64_t> dims;
  for (int64_t i = 0; i < static_cast<int64_t>(from.size()); ++i)
    if (i < leading || (to[i - leading] == 1 && from[i] != 1))
      dims.push_back(i);
  if (!dims.empty())
    grad = create<SumDimOp>(grad, dims, /*keepdim=*/true);
  if (leading > 0)
    grad = reshape(grad, to);
  if (tensorType(grad).getElementType() != target.getElementType())
    grad = create<ToCopyOp>(grad, target.getElementType());
  return grad;
}

Value BackwardBuilder::restoreDims(Value value, ArrayRef<int64_t> dims,
                                   bool keepdim) {
  if (keepdim)
    return value;
  SmallVector<int64_t> sorted(dims);
  llvm::sort(sorted);
  for (int64_t dim : sorted)
    value = create<UnsqueezeOp>(value, dim);
  return value;
}

Value BackwardBuilder::full(Type type, double number) {
  auto tensor = cast<RankedTensorType>(type);
  TypedAttr value =
      isa<FloatType>(tensor.getElementType())
          ? TypedAttr(builder.getF64FloatAttr(number))
          : TypedAttr(builder.getI64IntegerAttr(static_cast<int64_t>(number)));
  return create<FullOp>(tensor.getShape(), value, tensor.getElementType());
}

bool BackwardBuilder::isColumnMajor(Value matrix) {
  const Strides &strides = layout.strides(matrix);
  ArrayRef<int64_t> shape = tensorType(matrix).getShape();
  return strides[0] == 1 && strides[1] == shape[0];
}
