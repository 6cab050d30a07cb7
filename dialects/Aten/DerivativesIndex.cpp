//===- DerivativesIndex.cpp - Derivatives of indexing -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// PyTorch's rules add into fresh zeros in place; here the zeros are `full` and
// the operator that adds returns its result.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Rules.h"

using namespace mlir;
using namespace accel;
using namespace accel::aten;

static TypedAttr zero(BackwardBuilder &b) {
  return b.getBuilder().getI64IntegerAttr(0);
}

BACKWARD(SelectIntOp) {
  operandGrads[0] = b.create<SelectBackwardOp>(grads[0], shapeOf(getSelf()),
                                               getDim(), getIndex());
  return success();
}

BACKWARD(ConstantPadNdOp) {
  SmallVector<int64_t> cut;
  for (int64_t size : getPad())
    cut.push_back(-size);
  operandGrads[0] = b.create<ConstantPadNdOp>(grads[0], cut, zero(b));
  return success();
}

BACKWARD(FlipOp) {
  operandGrads[0] = b.create<FlipOp>(grads[0], getDims());
  return success();
}

BACKWARD(TrilOp) {
  operandGrads[0] = b.create<TrilOp>(grads[0], getDiagonal());
  return success();
}
BACKWARD(TriuOp) {
  operandGrads[0] = b.create<TriuOp>(grads[0], getDiagonal());
  return success();
}

BACKWARD(RollOp) {
  SmallVector<int64_t> shifts, dims(llvm::reverse(getDims()));
  for (int64_t shift : llvm::reverse(getShifts()))
    shifts.push_back(-shift);
  operandGrads[0] = b.create<RollOp>(grads[0], shifts, dims);
  return success();
}

BACKWARD(RepeatOp) {
  ArrayRef<int64_t> shape = shapeOf(getSelf()), repeats = getRepeats();
  Value grad = grads[0];
  if (tensorType(grad).getNumElements() == 0)
    return success();
  size_t added = repeats.size() - shape.size();
  for (size_t i = 0; i < added; ++i)
    grad = b.create<SumDimOp>(grad, ArrayRef<int64_t>(0), /*keepdim=*/false);
  // Each repeated dimension becomes two, and the copies are summed.
  SmallVector<int64_t> split, copies;
  for (auto [i, size] : llvm::enumerate(shape)) {
    if (repeats[added + i] != 1) {
      copies.push_back(split.size());
      split.push_back(repeats[added + i]);
    }
    split.push_back(size);
  }
  grad = b.reshape(grad, split);
  if (!copies.empty())
    grad = b.create<SumDimOp>(grad, copies, /*keepdim=*/false);
  operandGrads[0] = grad;
  return success();
}

BACKWARD(SliceScatterOp) {
  if (needed[0])
    operandGrads[0] =
        b.create<SliceScatterOp>(grads[0], b.full(getSrc().getType()), getDim(),
                                 getStart(), getEnd(), getStep());
  if (needed[1])
    operandGrads[1] = b.create<SliceTensorOp>(grads[0], getDim(), getStart(),
                                              getEnd(), getStep());
  return success();
}

BACKWARD(SelectScatterOp) {
  if (needed[0])
    operandGrads[0] = b.create<SelectScatterOp>(
        grads[0], b.full(getSrc().getType()), getDim(), getIndex());
  if (needed[1])
    operandGrads[1] = b.create<SelectIntOp>(grads[0], getDim(), getIndex());
  return success();
}

BACKWARD(IndexSelectOp) {
  Value index = getIndex();
  Value grad = grads[0];
  if (shapeOf(index).empty())
    index = b.create<ViewOp>(index, ArrayRef<int64_t>(1));
  operandGrads[0] =
      b.create<IndexAddOp>(b.full(getSelf().getType()), index, grad, getDim());
  return success();
}

BACKWARD(IndexAddOp) {
  if (needed[0])
    operandGrads[0] = grads[0];
  if (needed[2])
    operandGrads[2] = b.create<IndexSelectOp>(grads[0], getIndex(), getDim());
  return success();
}

BACKWARD(GatherOp) {
  operandGrads[0] = b.create<ScatterAddOp>(b.full(getSelf().getType()),
                                           getIndex(), grads[0], getDim());
  return success();
}

/// The gradient of the elements that were written, in the type of `src`.
static Value gatherFor(BackwardBuilder &b, Value grad, Value index, Value src,
                       int64_t dim) {
  Value part = b.create<GatherOp>(grad, index, dim);
  if (part.getType() == src.getType())
    return part;
  // Of a larger source only the corner was read.
  SmallVector<int64_t> pad;
  ArrayRef<int64_t> from = shapeOf(index), to = shapeOf(src);
  for (int64_t i = static_cast<int64_t>(from.size()) - 1; i >= 0; --i)
    pad.append({0, to[i] - from[i]});
  return b.create<ConstantPadNdOp>(part, pad, zero(b));
}

BACKWARD(ScatterSrcOp) {
  if (needed[0])
    operandGrads[0] =
        b.create<ScatterValueOp>(grads[0], getIndex(), getDim(), zero(b));
  if (needed[2])
    operandGrads[2] = gatherFor(b, grads[0], getIndex(), getSrc(), getDim());
  return success();
}

BACKWARD(ScatterAddOp) {
  if (needed[0])
    operandGrads[0] = grads[0];
  if (needed[2])
    operandGrads[2] = gatherFor(b, grads[0], getIndex(), getSrc(), getDim());
  return success();
}

BACKWARD(ScatterValueOp) {
  operandGrads[0] =
      b.create<ScatterValueOp>(grads[0], getIndex(), getDim(), zero(b));
  return success();
}

BACKWARD(IndexTensorOp) {
  operandGrads[0] =
      b.create<IndexPutOp>(b.full(getSelf().getType()), grads[0], getIndices(),
                           getDims(), /*accumulate=*/true);
  return success();
}

BACKWARD(IndexPutOp) {
  if (needed[0]) {
    operandGrads[0] = grads[0];
    if (!getAccumulate())
      operandGrads[0] =
          b.create<IndexPutOp>(grads[0], b.full(getValues().getType()),
                               getIndices(), getDims(), /*accumulate=*/false);
  }
  if (needed[1])
    operandGrads[1] =
        b.sumTo(b.create<IndexTensorOp>(grads[0], getIndices(), getDims()),
                getValues().getType());
  return success();
}
