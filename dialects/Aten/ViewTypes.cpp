//===- ViewTypes.cpp - Result types of views and data movement --*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Aten.h"
#include "dialects/Aten/Rules.h"

#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace accel;
using namespace accel::aten;

LogicalResult aten::checkDim(std::optional<Location> loc, int64_t dim,
                             int64_t rank) {
  if (dim >= 0 && dim < rank)
    return success();
  return emitOptionalError(loc, "dimension ", dim,
                           " is outside of a tensor of ", rank, " dimensions");
}

LogicalResult aten::checkDims(std::optional<Location> loc,
                              ArrayRef<int64_t> dims, int64_t rank) {
  llvm::SmallBitVector seen(rank);
  for (int64_t dim : dims) {
    if (failed(checkDim(loc, dim, rank)))
      return failure();
    if (seen.test(dim))
      return emitOptionalError(loc, "dimension ", dim, " appears twice");
    seen.set(dim);
  }
  return success();
}

INFER(TOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  if (self.getRank() != 2)
    return emitOptionalError(loc, "expects a matrix, got ", self);
  results.push_back(self.clone({self.getDimSize(1), self.getDimSize(0)}));
  return success();
}

INFER(TransposeIntOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  if (failed(checkDim(loc, adaptor.getDim0(), self.getRank())) ||
      failed(checkDim(loc, adaptor.getDim1(), self.getRank())))
    return failure();
  SmallVector<int64_t> shape(self.getShape());
  std::swap(shape[adaptor.getDim0()], shape[adaptor.getDim1()]);
  results.push_back(self.clone(shape));
  return success();
}

INFER(PermuteOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  llvm::SmallBitVector seen(self.getRank());
  SmallVector<int64_t> shape;
  if (static_cast<int64_t>(adaptor.getDims().size()) != self.getRank())
    return emitOptionalError(loc, "expects ", self.getRank(),
                             " dimensions, got ", adaptor.getDims().size());
  for (int64_t dim : adaptor.getDims()) {
    if (failed(checkDim(loc, dim, self.getRank())))
      return failure();
    if (seen.test(dim))
      return emitOptionalError(loc, "dimension ", dim, " appears twice");
    seen.set(dim);
    shape.push_back(self.getDimSize(dim));
  }
  results.push_back(self.clone(shape));
  return success();
}

INFER(ViewOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  int64_t numel = 1;
  for (int64_t size : adaptor.getSize()) {
    if (size < 0)
      return emitOptionalError(loc, "size ", size, " is negative");
    numel *= size;
  }
  if (numel != self.getNumElements())
    return emitOptionalError(loc, "cannot view ", self.getNumElements(),
                             " elements as ", numel);
  results.push_back(self.clone(adaptor.getSize()));
  return success();
}

INFER(ExpandOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  ArrayRef<int64_t> size = adaptor.getSize();
  auto shape = broadcastShapes({self.getShape(), size});
  if (!shape || ArrayRef<int64_t>(*shape) != size)
    return emitOptionalError(loc, "cannot expand ", self, " to the given size");
  results.push_back(self.clone(size));
  return success();
}

INFER(UnsqueezeOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  if (failed(checkDim(loc, adaptor.getDim(), self.getRank() + 1)))
    return failure();
  SmallVector<int64_t> shape(self.getShape());
  shape.insert(shape.begin() + adaptor.getDim(), 1);
  results.push_back(self.clone(shape));
  return success();
}

INFER(SqueezeDimOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  if (failed(checkDim(loc, adaptor.getDim(), self.getRank())))
    return failure();
  if (self.getDimSize(adaptor.getDim()) != 1)
    return emitOptionalError(loc, "dimension ", adaptor.getDim(), " has size ",
                             self.getDimSize(adaptor.getDim()), ", expected 1");
  SmallVector<int64_t> shape(self.getShape());
  shape.erase(shape.begin() + adaptor.getDim());
  results.push_back(self.clone(shape));
  return success();
}

/// Number of elements of [start, end) by step in a dimension of `size`.
static FailureOr<int64_t> sliceSize(std::optional<Location> loc, int64_t size,
                                    int64_t start, int64_t end, int64_t step) {
  if (start < 0 || start > end || end > size || step < 1) {
    (void)emitOptionalError(loc, "slice [", start, " : ", end, " : ", step,
                            "] is outside of a dimension of size ", size);
    return failure();
  }
  return (end - start + step - 1) / step;
}

INFER(SliceTensorOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  if (failed(checkDim(loc, adaptor.getDim(), self.getRank())))
    return failure();
  SmallVector<int64_t> shape(self.getShape());
  auto size = sliceSize(loc, shape[adaptor.getDim()], adaptor.getStart(),
                        adaptor.getEnd(), adaptor.getStep());
  if (failed(size))
    return failure();
  shape[adaptor.getDim()] = *size;
  results.push_back(self.clone(shape));
  return success();
}

INFER(SliceBackwardOp) {
  RankedTensorType grad = tensorType(adaptor.getGradOutput());
  SmallVector<int64_t> shape(adaptor.getInputSizes());
  if (failed(checkDim(loc, adaptor.getDim(), shape.size())))
    return failure();
  auto size = sliceSize(loc, shape[adaptor.getDim()], adaptor.getStart(),
                        adaptor.getEnd(), adaptor.getStep());
  if (failed(size))
    return failure();
  shape[adaptor.getDim()] = *size;
  if (ArrayRef<int64_t>(shape) != grad.getShape())
    return emitOptionalError(loc, "gradient ", grad,
                             " does not fit the slice of the given sizes");
  results.push_back(grad.clone(adaptor.getInputSizes()));
  return success();
}

INFER(CatOp) {
  if (adaptor.getTensors().empty())
    return emitOptionalError(loc, "expects at least one tensor");
  RankedTensorType first = tensorType(adaptor.getTensors().front());
  if (failed(checkDim(loc, adaptor.getDim(), first.getRank())))
    return failure();
  SmallVector<int64_t> shape(first.getShape());
  shape[adaptor.getDim()] = 0;
  SmallVector<RankedTensorType> types;
  for (Value tensor : adaptor.getTensors()) {
    RankedTensorType type = tensorType(tensor);
    types.push_back(type);
    SmallVector<int64_t> other(type.getShape());
    if (type.getRank() == first.getRank())
      other[adaptor.getDim()] = first.getDimSize(adaptor.getDim());
    if (ArrayRef<int64_t>(other) != first.getShape())
      return emitOptionalError(loc, "cannot join ", first, " and ", type,
                               " along dimension ", adaptor.getDim());
    shape[adaptor.getDim()] += type.getDimSize(adaptor.getDim());
  }
  results.push_back(RankedTensorType::get(shape, promoteTypes(types)));
  return success();
}

INFER(EmbeddingOp) {
  RankedTensorType weight = tensorType(adaptor.getWeight());
  if (weight.getRank() != 2)
    return emitOptionalError(loc, "expects a table of two dimensions, got ",
                             weight);
  RankedTensorType indices = tensorType(adaptor.getIndices());
  if (weight.getDimSize(0) == 0 && indices.getNumElements())
    return emitOptionalError(loc, "table ", weight, " has no rows");
  SmallVector<int64_t> shape(indices.getShape());
  shape.push_back(weight.getDimSize(1));
  results.push_back(weight.clone(shape));
  return success();
}

INFER(EmbeddingDenseBackwardOp) {
  RankedTensorType grad = tensorType(adaptor.getGradOutput());
  SmallVector<int64_t> shape(tensorType(adaptor.getIndices()).getShape());
  if (grad.getRank() == 0 || grad.getShape().drop_back() != ArrayRef(shape))
    return emitOptionalError(loc, "gradient ", grad,
                             " does not fit the indices ",
                             adaptor.getIndices().getType());
  results.push_back(grad.clone(
      {static_cast<int64_t>(adaptor.getNumWeights()), grad.getShape().back()}));
  return success();
}

Type aten::sumType(Type type) {
  return isa<FloatType>(type) ? type : IntegerType::get(type.getContext(), 64);
}

LogicalResult aten::inferReduction(std::optional<Location> loc,
                                   RankedTensorType self,
                                   ArrayRef<int64_t> dims, bool keepdim,
                                   Type elementType,
                                   SmallVectorImpl<Type> &results) {
  if (dims.empty() && self.getRank())
    return emitOptionalError(loc, "expects at least one dimension");
  if (failed(checkDims(loc, dims, self.getRank())))
    return failure();
  SmallVector<int64_t> shape;
  for (int64_t i = 0; i < self.getRank(); ++i) {
    if (!llvm::is_contained(dims, i))
      shape.push_back(self.getDimSize(i));
    else if (keepdim)
      shape.push_back(1);
  }
  results.push_back(RankedTensorType::get(shape, elementType));
  return success();
}

INFER(SumDimOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  return inferReduction(loc, self, adaptor.getDim(), adaptor.getKeepdim(),
                        sumType(self.getElementType()), results);
}

INFER(MeanDimOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  return inferReduction(loc, self, adaptor.getDim(), adaptor.getKeepdim(),
                        self.getElementType(), results);
}
