//===- IndexTypes.cpp - Types and layouts of indexing -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Rules.h"

using namespace mlir;
using namespace accel;
using namespace accel::aten;

//===----------------------------------------------------------------------===//
// Positions known here
//===----------------------------------------------------------------------===//

/// Fails unless `index` is a position of dimension `dim` of `shape`.
static LogicalResult checkPosition(std::optional<Location> loc,
                                   ArrayRef<int64_t> shape, int64_t dim,
                                   int64_t index) {
  if (failed(checkDim(loc, dim, shape.size())))
    return failure();
  if (index < 0 || index >= shape[dim])
    return emitOptionalError(loc, "position ", index,
                             " is outside of a dimension of size ", shape[dim]);
  return success();
}

INFER(SelectIntOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  if (failed(checkPosition(loc, self.getShape(), adaptor.getDim(),
                           adaptor.getIndex())))
    return failure();
  SmallVector<int64_t> shape(self.getShape());
  shape.erase(shape.begin() + adaptor.getDim());
  results.push_back(self.clone(shape));
  return success();
}

Strides SelectIntOp::getStrides(LayoutAnalysis &layout, unsigned) {
  Strides strides = layout.strides(getSelf());
  strides.erase(strides.begin() + getDim());
  return strides;
}

INFER(SelectBackwardOp) {
  RankedTensorType grad = tensorType(adaptor.getGradOutput());
  SmallVector<int64_t> shape(adaptor.getInputSizes());
  if (failed(checkPosition(loc, shape, adaptor.getDim(), adaptor.getIndex())))
    return failure();
  shape.erase(shape.begin() + adaptor.getDim());
  if (ArrayRef<int64_t>(shape) != grad.getShape())
    return emitOptionalError(loc, "gradient ", grad,
                             " does not fit the selection of the given sizes");
  results.push_back(grad.clone(adaptor.getInputSizes()));
  return success();
}

INFER(ConstantPadNdOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  ArrayRef<int64_t> pad = adaptor.getPad();
  if (pad.size() % 2 || static_cast<int64_t>(pad.size()) > 2 * self.getRank())
    return emitOptionalError(loc, "expects two sizes for each of at most ",
                             self.getRank(), " dimensions, got ", pad.size(),
                             " sizes");
  if (!isa<FloatType>(self.getElementType()) &&
      isa<FloatAttr>(adaptor.getValue()))
    return emitOptionalError(loc, "cannot fill ", self.getElementType(),
                             " with a floating-point number");
  SmallVector<int64_t> shape(self.getShape());
  for (size_t i = 0; i < pad.size(); i += 2) {
    int64_t &size = shape[shape.size() - 1 - i / 2];
    // What a negative size cuts must be there.
    int64_t cut =
        std::max<int64_t>(-pad[i], 0) + std::max<int64_t>(-pad[i + 1], 0);
    if (cut > size)
      return emitOptionalError(loc, "cannot cut ", cut,
                               " from a dimension of size ", size);
    size += pad[i] + pad[i + 1];
  }
  results.push_back(self.clone(shape));
  return success();
}

Strides ConstantPadNdOp::getStrides(LayoutAnalysis &layout, unsigned) {
  ArrayRef<int64_t> shape = shapeOf(getResult());
  if (llvm::all_of(getPad(), [](int64_t size) { return size <= 0; }))
    return LayoutAnalysis::preservedStrides(shape, layout.strides(getSelf()));
  if (layout.isChannelsLast(getSelf()))
    return LayoutAnalysis::channelsLast(shape);
  return Strides(contiguousStrides(shape));
}

INFER(FlipOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  if (failed(checkDims(loc, adaptor.getDims(), self.getRank())))
    return failure();
  results.push_back(self);
  return success();
}

Strides FlipOp::getStrides(LayoutAnalysis &layout, unsigned) {
  return layout.preservedStrides(getSelf());
}

template <typename Adaptor>
static LogicalResult inferTriangle(std::optional<Location> loc, Adaptor adaptor,
                                   SmallVectorImpl<Type> &results) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  if (self.getRank() < 2)
    return emitOptionalError(loc, "expects matrices, got ", self);
  results.push_back(self);
  return success();
}
INFER(TrilOp) { return inferTriangle(loc, adaptor, results); }
INFER(TriuOp) { return inferTriangle(loc, adaptor, results); }

INFER(RollOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  if (adaptor.getShifts().size() != adaptor.getDims().size() ||
      adaptor.getDims().empty())
    return emitOptionalError(loc, "expects a shift for each dimension");
  if (failed(checkDims(loc, adaptor.getDims(), self.getRank())))
    return failure();
  results.push_back(self);
  return success();
}

INFER(RepeatOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  ArrayRef<int64_t> repeats = adaptor.getRepeats();
  int64_t added = static_cast<int64_t>(repeats.size()) - self.getRank();
  if (added < 0 || llvm::any_of(repeats, [](int64_t n) { return n < 0; }))
    return emitOptionalError(loc, "expects a number of copies for each of the ",
                             self.getRank(), " dimensions");
  SmallVector<int64_t> shape(repeats);
  for (int64_t i = 0; i < self.getRank(); ++i)
    shape[added + i] *= self.getDimSize(i);
  results.push_back(self.clone(shape));
  return success();
}

/// Fails unless `src` is what stands in the place of `shape` of `self`.
static LogicalResult checkPlace(std::optional<Location> loc,
                                RankedTensorType self, RankedTensorType src,
                                ArrayRef<int64_t> shape) {
  if (src.getShape() == shape && src.getElementType() == self.getElementType())
    return success();
  return emitOptionalError(loc, "source ", src, " does not fit its place in ",
                           self);
}

INFER(SliceScatterOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  int64_t dim = adaptor.getDim(), start = adaptor.getStart();
  int64_t end = adaptor.getEnd(), step = adaptor.getStep();
  if (failed(checkDim(loc, dim, self.getRank())))
    return failure();
  if (start < 0 || start > end || end > self.getDimSize(dim) || step < 1)
    return emitOptionalError(loc, "slice [", start, " : ", end, " : ", step,
                             "] is outside of a dimension of size ",
                             self.getDimSize(dim));
  SmallVector<int64_t> shape(self.getShape());
  shape[dim] = (end - start + step - 1) / step;
  if (failed(checkPlace(loc, self, tensorType(adaptor.getSrc()), shape)))
    return failure();
  results.push_back(self);
  return success();
}

INFER(SelectScatterOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  if (failed(checkPosition(loc, self.getShape(), adaptor.getDim(),
                           adaptor.getIndex())))
    return failure();
  SmallVector<int64_t> shape(self.getShape());
  shape.erase(shape.begin() + adaptor.getDim());
  if (failed(checkPlace(loc, self, tensorType(adaptor.getSrc()), shape)))
    return failure();
  results.push_back(self);
  return success();
}

/// A copy that keeps the strides, whatever lies between the elements, unless
/// several of them are one in memory.
static Strides clonedStrides(LayoutAnalysis &layout, Value self) {
  const Strides &strides = layout.strides(self);
  for (auto [size, stride] : llvm::zip(shapeOf(self), strides))
    if (stride == 0 && size > 1)
      return layout.preservedStrides(self);
  return strides;
}
Strides SliceScatterOp::getStrides(LayoutAnalysis &layout, unsigned) {
  return clonedStrides(layout, getSelf());
}
Strides SelectScatterOp::getStrides(LayoutAnalysis &layout, unsigned) {
  return clonedStrides(layout, getSelf());
}

//===----------------------------------------------------------------------===//
// Positions in tensors
//===----------------------------------------------------------------------===//

INFER(IndexSelectOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  RankedTensorType index = tensorType(adaptor.getIndex());
  if (failed(checkDim(loc, adaptor.getDim(), self.getRank())))
    return failure();
  if (index.getRank() > 1)
    return emitOptionalError(loc, "expects a list of positions, got ", index);
  SmallVector<int64_t> shape(self.getShape());
  if (shape[adaptor.getDim()] == 0 && index.getNumElements())
    return emitOptionalError(loc, "dimension ", adaptor.getDim(),
                             " has no elements");
  shape[adaptor.getDim()] = index.getNumElements();
  results.push_back(self.clone(shape));
  return success();
}

INFER(IndexAddOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  RankedTensorType index = tensorType(adaptor.getIndex());
  RankedTensorType source = tensorType(adaptor.getSource());
  if (failed(checkDim(loc, adaptor.getDim(), self.getRank())))
    return failure();
  if (index.getRank() != 1)
    return emitOptionalError(loc, "expects a list of positions, got ", index);
  SmallVector<int64_t> shape(self.getShape());
  shape[adaptor.getDim()] = index.getDimSize(0);
  if (source.getShape() != ArrayRef<int64_t>(shape) ||
      source.getElementType() != self.getElementType())
    return emitOptionalError(loc, "source ", source, " does not fit ", self,
                             " at the positions ", index);
  results.push_back(self);
  return success();
}

/// Fails unless `index` has the rank of `tensor` and is nowhere larger, but for
/// the dimension `free` (-1: none).
static LogicalResult checkWithin(std::optional<Location> loc,
                                 RankedTensorType index,
                                 RankedTensorType tensor, int64_t free) {
  if (index.getRank() != tensor.getRank())
    return emitOptionalError(loc, "index ", index,
                             " has not as many dimensions as ", tensor);
  if (index.getNumElements() == 0)
    return success();
  for (int64_t i = 0; i < index.getRank(); ++i)
    if (i != free && index.getDimSize(i) > tensor.getDimSize(i))
      return emitOptionalError(loc, "index ", index, " is larger than ", tensor,
                               " in dimension ", i);
  return success();
}

INFER(GatherOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  RankedTensorType index = tensorType(adaptor.getIndex());
  if (failed(checkDim(loc, adaptor.getDim(), self.getRank())) ||
      failed(checkWithin(loc, index, self, adaptor.getDim())))
    return failure();
  results.push_back(index.clone(self.getElementType()));
  return success();
}

template <typename Adaptor>
static LogicalResult inferScatter(std::optional<Location> loc, Adaptor adaptor,
                                  SmallVectorImpl<Type> &results) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  RankedTensorType index = tensorType(adaptor.getIndex());
  if (failed(checkDim(loc, adaptor.getDim(), self.getRank())) ||
      failed(checkWithin(loc, index, self, adaptor.getDim())))
    return failure();
  results.push_back(self);
  return success();
}

template <typename Adaptor>
static LogicalResult checkSource(std::optional<Location> loc, Adaptor adaptor) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  RankedTensorType src = tensorType(adaptor.getSrc());
  if (self.getElementType() != src.getElementType())
    return emitOptionalError(loc, "expects one element type, got ", self,
                             " and ", src);
  return checkWithin(loc, tensorType(adaptor.getIndex()), src, -1);
}

INFER(ScatterSrcOp) {
  if (failed(checkSource(loc, adaptor)))
    return failure();
  return inferScatter(loc, adaptor, results);
}
INFER(ScatterAddOp) {
  if (failed(checkSource(loc, adaptor)))
    return failure();
  return inferScatter(loc, adaptor, results);
}
INFER(ScatterValueOp) {
  if (!isa<FloatType>(elementOf(adaptor.getSelf())) &&
      isa<FloatAttr>(adaptor.getValue()))
    return emitOptionalError(loc, "cannot write a floating-point number to ",
                             adaptor.getSelf().getType());
  return inferScatter(loc, adaptor, results);
}

//===----------------------------------------------------------------------===//
// Positions in several dimensions
//===----------------------------------------------------------------------===//

namespace {

/// What `indices` at `dims` make of a tensor: their common shape stands at
/// dimension `at` of the result, `self`'s other dimensions around it.
struct Indexing {
  SmallVector<int64_t> shape;  // of the result
  SmallVector<int64_t> common; // of the indices
  int64_t at = 0;
};

} // namespace

static FailureOr<Indexing> indexing(std::optional<Location> loc,
                                    RankedTensorType self, ValueRange indices,
                                    ArrayRef<int64_t> dims) {
  auto fail = [&](auto &&...parts) -> FailureOr<Indexing> {
    (void)emitOptionalError(loc, parts...);
    return failure();
  };
  if (dims.empty() || dims.size() != indices.size())
    return fail("expects a dimension for each index, got ", dims.size(),
                " for ", indices.size());
  SmallVector<ArrayRef<int64_t>> shapes;
  bool adjacent = true;
  for (auto [i, dim] : llvm::enumerate(dims)) {
    if (failed(checkDim(loc, dim, self.getRank())))
      return failure();
    if (i > 0 && dim <= dims[i - 1])
      return fail("dimensions do not rise");
    adjacent &= i == 0 || dim == dims[i - 1] + 1;
    shapes.push_back(shapeOf(indices[i]));
  }
  auto common = broadcastShapes(shapes);
  if (!common)
    return fail("the indices' shapes do not broadcast");
  Indexing result;
  result.common = *common;
  result.at = adjacent ? dims.front() : 0;
  int64_t numel = 1;
  for (int64_t size : *common)
    numel *= size;
  for (int64_t i = 0; i < self.getRank(); ++i) {
    if (!llvm::is_contained(dims, i))
      result.shape.push_back(self.getDimSize(i));
    else if (self.getDimSize(i) == 0 && numel)
      return fail("dimension ", i, " has no elements");
  }
  result.shape.insert(result.shape.begin() + result.at, common->begin(),
                      common->end());
  return result;
}

INFER(IndexTensorOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  auto found = indexing(loc, self, adaptor.getIndices(), adaptor.getDims());
  if (failed(found))
    return failure();
  results.push_back(self.clone(found->shape));
  return success();
}

/// As ATen's AdvancedIndex: an iterator over the tensor, with stride 0 where it
/// is indexed, and the indices.
Strides IndexTensorOp::getStrides(LayoutAnalysis &layout, unsigned) {
  Indexing found =
      *indexing(std::nullopt, tensorType(getSelf()), getIndices(), getDims());
  const Strides &self = layout.strides(getSelf());
  Strides source;
  for (auto [i, stride] : llvm::enumerate(self))
    if (!llvm::is_contained(getDims(), static_cast<int64_t>(i)))
      source.push_back(stride);
  source.insert(source.begin() + found.at, found.common.size(), 0);
  SmallVector<Strides> operands = {source};
  for (Value index : getIndices()) {
    ArrayRef<int64_t> shape = shapeOf(index);
    Strides strides(found.shape.size(), 0);
    int64_t offset = found.at + found.common.size() - shape.size();
    for (auto [i, stride] : llvm::enumerate(layout.strides(index)))
      if (shape[i] == found.shape[offset + i])
        strides[offset + i] = stride;
    operands.push_back(std::move(strides));
  }
  return LayoutAnalysis::iteratorStrides(found.shape, operands);
}

INFER(IndexPutOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  RankedTensorType values = tensorType(adaptor.getValues());
  auto found = indexing(loc, self, adaptor.getIndices(), adaptor.getDims());
  if (failed(found))
    return failure();
  auto shape = broadcastShapes({values.getShape(), found->shape});
  if (!shape || *shape != found->shape ||
      values.getElementType() != self.getElementType())
    return emitOptionalError(loc, "values ", values, " do not fit ",
                             self.clone(found->shape),
                             ", which the indices choose");
  results.push_back(self);
  return success();
}

Strides IndexPutOp::getStrides(LayoutAnalysis &layout, unsigned) {
  return layout.preservedStrides(getSelf());
}
