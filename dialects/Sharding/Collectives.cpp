//===- Collectives.cpp - What ranks exchange --------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Sharding/Sharding.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace accel::sharding;

/// Fails unless the module has a mesh with these axes, each named once.
/// `ranks` becomes the product of their sizes.
static LogicalResult verifyAxes(Operation *op, ArrayRef<StringRef> axes,
                                int64_t &ranks) {
  auto module = op->getParentOfType<mlir::ModuleOp>();
  MeshOp mesh = module ? findOnly<MeshOp>(module) : MeshOp();
  if (!mesh)
    return op->emitOpError() << "is over '" << (axes.empty() ? "" : axes[0])
                             << "', but the module has no mesh";
  if (axes.empty())
    return op->emitOpError() << "is over no axis";
  llvm::StringSet<> seen;
  ranks = 1;
  for (StringRef name : axes) {
    if (!seen.insert(name).second)
      return op->emitOpError() << "is over '" << name << "' twice";
    AxisAttr found;
    for (auto axis : mesh.getAxes().getAsRange<AxisAttr>())
      if (axis.getName() == name)
        found = axis;
    if (!found)
      return op->emitOpError()
             << "is over '" << name << "', which is no axis of the mesh";
    ranks *= found.getSize();
  }
  return success();
}

static LogicalResult verifyAxes(Operation *op, ArrayAttr axes) {
  int64_t ranks = 1;
  return verifyAxes(
      op, llvm::to_vector(axes.getAsValueRange<StringAttr, StringRef>()),
      ranks);
}

static LogicalResult verifyDim(Operation *op, StringRef what, int64_t dim,
                               RankedTensorType type) {
  if (dim < 0 || dim >= type.getRank())
    return op->emitOpError()
           << what << " " << dim << " is no dimension of " << type;
  return success();
}

/// `part` is `whole` with each of `dims` divided by its number of ranks.
static LogicalResult verifyTypes(Operation *op, RankedTensorType given,
                                 RankedTensorType expected,
                                 RankedTensorType made) {
  if (made != expected)
    return op->emitOpError()
           << "makes " << made << " of " << given << ", expected " << expected;
  return success();
}

static RankedTensorType scaled(RankedTensorType type, int64_t dim,
                               int64_t times, int64_t parts) {
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = shape[dim] * times / parts;
  return type.clone(shape);
}

/// Of an operation that makes the whole of a dimension, or a part of it.
template <typename OpT> static LogicalResult verifyDimOp(OpT op, bool gathers) {
  auto from = cast<RankedTensorType>(op.getValue().getType());
  auto to = cast<RankedTensorType>(op.getResult().getType());
  const auto dim = static_cast<int64_t>(op.getDim()),
             pieces = static_cast<int64_t>(op.getPieces());
  int64_t ranks = 1;
  if (failed(verifyAxes(op, {op.getAxis()}, ranks)) ||
      failed(verifyDim(op, "dim", dim, from)))
    return failure();
  if (pieces < 1)
    return op.emitOpError() << "has " << pieces << " pieces, expected at least "
                            << "1";
  if (op.getMirrored() && pieces % 2)
    return op.emitOpError()
           << "mirrors " << pieces << " pieces, expected an even number";
  const int64_t parts = gathers ? pieces : pieces * ranks;
  if (from.getDimSize(dim) % parts != 0)
    return op.emitOpError()
           << "has dimension " << dim << " of size " << from.getDimSize(dim)
           << ", which " << parts << " parts do not divide";
  return verifyTypes(
      op, from,
      gathers ? scaled(from, dim, ranks, 1) : scaled(from, dim, 1, ranks), to);
}

LogicalResult AllGatherOp::verify() { return verifyDimOp(*this, true); }
LogicalResult ReduceScatterOp::verify() { return verifyDimOp(*this, false); }
LogicalResult SliceOp::verify() { return verifyDimOp(*this, false); }
LogicalResult AllReduceOp::verify() { return verifyAxes(*this, getAxes()); }
LogicalResult FirstRankOp::verify() { return verifyAxes(*this, getAxes()); }

LogicalResult AllToAllOp::verify() {
  auto from = cast<RankedTensorType>(getValue().getType());
  const auto split = static_cast<int64_t>(getSplit()),
             concat = static_cast<int64_t>(getConcat());
  int64_t ranks = 1;
  if (failed(verifyAxes(*this, {getAxis()}, ranks)) ||
      failed(verifyDim(*this, "split", split, from)) ||
      failed(verifyDim(*this, "concat", concat, from)))
    return failure();
  if (split == concat)
    return emitOpError() << "splits and concatenates dimension " << split;
  if (from.getDimSize(split) % ranks != 0)
    return emitOpError() << "has dimension " << split << " of size "
                         << from.getDimSize(split) << ", which " << ranks
                         << " parts do not divide";
  return verifyTypes(*this, from,
                     scaled(scaled(from, split, 1, ranks), concat, ranks, 1),
                     cast<RankedTensorType>(getResult().getType()));
}

LogicalResult PermuteOp::verify() {
  int64_t ranks = 1;
  if (failed(verifyAxes(*this, {getAxis()}, ranks)))
    return failure();
  const auto shift = static_cast<int64_t>(getShift());
  if (shift < 1 || shift >= ranks)
    return emitOpError() << "moves values by " << shift << " of " << ranks
                         << " ranks, expected 1 to " << ranks - 1;
  return success();
}

/// Fails unless `ends` are those of each rank's rows, of experts that the ranks
/// of the axes share. `own` becomes the number of a rank's experts.
static LogicalResult verifyEnds(Operation *op, Value ends, ArrayAttr axes,
                                int64_t &own) {
  auto type = cast<RankedTensorType>(ends.getType());
  int64_t ranks = 1;
  if (failed(verifyAxes(
          op, llvm::to_vector(axes.getAsValueRange<StringAttr, StringRef>()),
          ranks)))
    return failure();
  if (type.getRank() != 2 || !type.getElementType().isInteger(32) ||
      type.getDimSize(0) != ranks || type.getDimSize(1) == 0 ||
      type.getDimSize(1) % ranks != 0)
    return op->emitOpError()
           << "reads ends " << type << ", expected tensor<" << ranks
           << " x experts x i32>, of experts that " << ranks << " ranks divide";
  own = type.getDimSize(1) / ranks;
  return success();
}

LogicalResult ExpertEndsOp::verify() {
  int64_t own = 0;
  if (failed(verifyEnds(*this, getEnds(), getAxes(), own)))
    return failure();
  if (static_cast<int64_t>(getRows()) < 1)
    return emitOpError() << "has a place for "
                         << static_cast<int64_t>(getRows())
                         << " rows, expected at least 1";
  auto ends = cast<RankedTensorType>(getEnds().getType());
  return verifyTypes(*this, ends, ends.clone({own}),
                     cast<RankedTensorType>(getResult().getType()));
}

/// Rows change their number, and nothing else.
template <typename OpT> static LogicalResult verifyRows(OpT op) {
  int64_t own = 0;
  if (failed(verifyEnds(op, op.getEnds(), op.getAxes(), own)))
    return failure();
  auto from = cast<RankedTensorType>(op.getValue().getType());
  auto to = cast<RankedTensorType>(op.getResult().getType());
  if (from.getRank() != 2)
    return op.emitOpError() << "moves rows of " << from << ", expected [rows, "
                            << "features]";
  return verifyTypes(
      op, from,
      from.clone({to.getRank() ? to.getDimSize(0) : 0, from.getDimSize(1)}),
      to);
}

LogicalResult DispatchOp::verify() { return verifyRows(*this); }
LogicalResult CombineOp::verify() { return verifyRows(*this); }

LogicalResult CoordinateOp::verify() {
  auto type = cast<RankedTensorType>(getResult().getType());
  int64_t ranks = 1;
  if (failed(verifyAxes(*this, {getAxis()}, ranks)))
    return failure();
  if (type.getRank() != 0 || !type.getElementType().isInteger(64))
    return emitOpError() << "makes " << type << ", expected tensor<i64>";
  if (static_cast<int64_t>(getStep()) < 1)
    return emitOpError() << "counts in steps of "
                         << static_cast<int64_t>(getStep())
                         << ", expected at least 1";
  return success();
}
