//===- Routing.cpp - Types, cost and derivatives of routing -----*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Rules.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::aten;

static LogicalResult checkDim(std::optional<Location> loc, int64_t dim,
                              int64_t rank) {
  if (dim >= 0 && dim < rank)
    return success();
  return emitOptionalError(loc, "dimension ", dim,
                           " is outside of a tensor of ", rank, " dimensions");
}

static double numel(Value value) { return tensorType(value).getNumElements(); }

//===----------------------------------------------------------------------===//
// Choices
//===----------------------------------------------------------------------===//

INFER(TopkOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  int64_t dim = adaptor.getDim(), k = adaptor.getK();
  if (failed(checkDim(loc, dim, self.getRank())))
    return failure();
  if (k < 0 || k > self.getDimSize(dim))
    return emitOptionalError(loc, "cannot take ", k, " of ",
                             self.getDimSize(dim), " elements");
  SmallVector<int64_t> shape(self.getShape());
  shape[dim] = k;
  results.push_back(self.clone(shape));
  results.push_back(self.clone(shape, IntegerType::get(context, 64)));
  return success();
}

Cost TopkOp::getCost() { return {numel(getSelf()), touchedBytes(*this)}; }

static Value selectedGrad(BackwardBuilder &b, Value grad, Value indices,
                          Value self, int64_t dim) {
  return b.create<ValueSelectingReductionBackwardOp>(grad, indices, dim,
                                                     shapeOf(self));
}

BACKWARD(TopkOp) {
  if (grads[0])
    operandGrads[0] =
        selectedGrad(b, grads[0], getIndices(), getSelf(), getDim());
  return success();
}

INFER(ValueSelectingReductionBackwardOp) {
  RankedTensorType grad = tensorType(adaptor.getGrad());
  if (grad.getShape() != shapeOf(adaptor.getIndices()))
    return emitOptionalError(loc, "gradient ", grad,
                             " does not fit the indices ",
                             adaptor.getIndices().getType());
  if (failed(checkDim(loc, adaptor.getDim(), adaptor.getSizes().size())))
    return failure();
  SmallVector<int64_t> rest(adaptor.getSizes());
  if (rest.size() == grad.getShape().size())
    rest[adaptor.getDim()] = grad.getDimSize(adaptor.getDim());
  if (ArrayRef<int64_t>(rest) != grad.getShape())
    return emitOptionalError(loc, "gradient ", grad,
                             " does not fit the given sizes");
  results.push_back(grad.clone(adaptor.getSizes()));
  return success();
}

INFER(SortStableOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  if (failed(checkDim(loc, adaptor.getDim(), self.getRank())))
    return failure();
  results.push_back(self);
  results.push_back(self.clone(self.getShape(), IntegerType::get(context, 64)));
  return success();
}

Cost SortStableOp::getCost() {
  double length = std::max<double>(shapeOf(getSelf())[getDim()], 2);
  return {numel(getSelf()) * std::log2(length), touchedBytes(*this)};
}

/// Positions are sorted along with the values, in one more tensor.
int64_t SortStableOp::getWorkspaceBytes(Device device) {
  return device == Device::Cpu
             ? alignedBytes(tensorBytes(getIndices().getType()))
             : 0;
}

BACKWARD(SortStableOp) {
  if (grads[0])
    operandGrads[0] =
        selectedGrad(b, grads[0], getIndices(), getSelf(), getDim());
  return success();
}

LogicalResult FloorDivideScalarOp::verify() {
  if (getOther() == 0)
    return emitOpError("divides by 0");
  return success();
}

/// ATen wraps the divisor in a 0-d tensor of 64 bits, and casts it to 32.
int64_t FloorDivideScalarOp::getWorkspaceBytes(Device) {
  return tensorType(getResult()).getElementType().isInteger(64) ? 64 : 128;
}

INFER(SearchsortedTensorOp) {
  RankedTensorType sorted = tensorType(adaptor.getSortedSequence());
  RankedTensorType self = tensorType(adaptor.getSelf());
  if (sorted.getRank() != 1)
    return emitOptionalError(loc, "expects a vector, got ", sorted);
  if (sorted.getElementType() != self.getElementType())
    return emitOptionalError(loc, "expects one element type, got ", sorted,
                             " and ", self);
  results.push_back(
      self.clone(self.getShape(),
                 IntegerType::get(context, adaptor.getOutInt32() ? 32 : 64)));
  return success();
}

Cost SearchsortedTensorOp::getCost() {
  double steps = std::log2(std::max(numel(getSortedSequence()), 2.0));
  return {numel(getSelf()) * steps,
          2.0 * tensorBytes(getResult().getType()) * (1 + steps)};
}

INFER(HistcOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  if (static_cast<int64_t>(adaptor.getBins()) < 1 ||
      static_cast<int64_t>(adaptor.getMax()) <
          static_cast<int64_t>(adaptor.getMin()))
    return emitOptionalError(loc, "expects min <= max and at least one range");
  results.push_back(self.clone({static_cast<int64_t>(adaptor.getBins())}));
  return success();
}

Cost HistcOp::getCost() { return {2 * numel(getSelf()), touchedBytes(*this)}; }

/// The ranges' edges, and the counts once more; where min is max ATen looks
/// for them in the data.
int64_t HistcOp::getWorkspaceBytes(Device device) {
  if (device != Device::Cpu)
    return 0;
  RankedTensorType type = tensorType(getResult());
  int64_t item = tensorBytes(type) / std::max<int64_t>(getBins(), 1);
  return alignedBytes((static_cast<int64_t>(getBins()) + 1) * item) +
         alignedBytes(tensorBytes(type)) + (getMin() == getMax() ? 64 : 0);
}

//===----------------------------------------------------------------------===//
// Experts
//===----------------------------------------------------------------------===//

INFER(GroupedMmOp) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  RankedTensorType mat2 = tensorType(adaptor.getMat2());
  RankedTensorType offs = tensorType(adaptor.getOffs());
  if (self.getElementType() != mat2.getElementType())
    return emitOptionalError(loc, "expects one element type, got ", self,
                             " and ", mat2);
  if (offs.getRank() != 1)
    return emitOptionalError(loc, "expects a vector of offsets, got ", offs);
  if (self.getRank() != 2 || (mat2.getRank() != 2 && mat2.getRank() != 3))
    return emitOptionalError(loc, "cannot multiply ", self, " and ", mat2,
                             " by groups");
  int64_t groups = offs.getDimSize(0), inner = self.getDimSize(1);
  if (mat2.getDimSize(mat2.getRank() - 2) != inner)
    return emitOptionalError(loc, "cannot multiply ", self, " and ", mat2);
  if (mat2.getRank() == 3 && mat2.getDimSize(0) != groups)
    return emitOptionalError(loc, "has ", groups, " offsets for the matrices ",
                             mat2);
  if (mat2.getRank() == 3)
    results.push_back(self.clone({self.getDimSize(0), mat2.getDimSize(2)}));
  else
    results.push_back(
        self.clone({groups, self.getDimSize(0), mat2.getDimSize(1)}));
  return success();
}

/// Each row meets one matrix, whatever the number of groups.
Cost GroupedMmOp::getCost() {
  Cost cost = {2.0 * numel(getSelf()) * shapeOf(getMat2()).back(),
               touchedBytes(*this)};
  if (!getRows())
    return cost;
  const bool byRows = tensorType(getMat2()).getRank() == 3;
  const int64_t bound = shapeOf(getSelf())[byRows ? 0 : 1];
  const double share =
      static_cast<double>(*getRows()) / std::max<double>(1, bound);
  cost.flops *= share;
  for (Value value : {getSelf(), byRows ? getResult() : getMat2()})
    cost.bytes -= (1 - share) * tensorBytes(value.getType());
  return cost;
}

LogicalResult GroupedMmOp::verify() {
  const bool byRows = tensorType(getMat2()).getRank() == 3;
  const int64_t bound = shapeOf(getSelf())[byRows ? 0 : 1];
  if (getRows() && (static_cast<int64_t>(*getRows()) < 0 ||
                    static_cast<int64_t>(*getRows()) > bound))
    return emitOpError() << "expects " << static_cast<int64_t>(*getRows())
                         << " rows in groups, of " << bound;
  return success();
}

/// As autograd's _grouped_mm_mat1_backward and _mat2_backward: a factor that is
/// laid out by columns gets its gradient transposed.
BACKWARD(GroupedMmOp) {
  if (tensorType(getMat2()).getRank() != 3)
    return emitOpError("of two matrices has no derivative");
  auto transposed = [&](Value value) -> Value {
    uint64_t rank = tensorType(value).getRank();
    if (auto inner = value.getDefiningOp<TransposeIntOp>())
      if (inner.getDim0() == rank - 2 && inner.getDim1() == rank - 1)
        return inner.getSelf();
    return b.create<TransposeIntOp>(value, rank - 2, rank - 1);
  };
  auto product = [&](Value self, Value mat2) -> Value {
    return b.create<GroupedMmOp>(self, mat2, getOffs(), getRowsAttr());
  };
  if (needed[1]) {
    const Strides &strides = b.getLayout().strides(getMat2());
    operandGrads[1] = strides[1] == 1 && strides[2] != 1
                          ? transposed(product(transposed(grads[0]), getSelf()))
                          : product(transposed(getSelf()), grads[0]);
  }
  if (needed[0])
    operandGrads[0] = product(grads[0], transposed(getMat2()));
  return success();
}
