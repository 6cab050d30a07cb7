//===- SliceTokens.cpp - Parts of tokens for experts ----------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Mesh/SliceTokens.h"

#include "dialects/Aten/Aten.h"

#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace accel {
namespace {

RankedTensorType tensor(Value value) {
  return cast<RankedTensorType>(value.getType());
}
int64_t rowsOf(Value value) {
  return tensor(value).getRank() ? tensor(value).getDimSize(0) : 0;
}

/// The experts of one sort of rows.
class Slicer {
public:
  Slicer(aten::SortStableOp sort, StringRef axis, int64_t ranks)
      : sort(sort), axis(axis), ranks(ranks), b(sort), location(sort.getLoc()) {
  }

  LogicalResult run() {
    flat = sort.getSelf().getDefiningOp<aten::ViewOp>();
    if (!flat || tensor(flat.getSelf()).getRank() != 2)
      return sort.emitOpError("does not sort the experts that tokens chose, "
                              "[tokens, experts a token]");
    tokens = rowsOf(flat.getSelf());
    if (tokens % ranks != 0)
      return sort.emitOpError("is of ")
             << tokens << " tokens, which " << ranks << " ranks of '" << axis
             << "' do not divide";
    Block *block = sort->getBlock();
    flat.getSelfMutable().assign(part(flat.getSelf()));
    for (Operation &op : llvm::make_early_inc_range(
             llvm::make_range(flat->getIterator(), block->end()))) {
      if (&op != flat && llvm::none_of(op.getOperands(), [&](Value v) {
            return parts.contains(v);
          }))
        continue;
      if (isa<aten::SearchsortedTensorOp>(op))
        continue; // counts of experts
      if (failed(rewrite(&op)))
        return failure();
    }
    for (Operation *op : replaced)
      if (op->use_empty())
        op->erase();
    return success();
  }

private:
  /// This rank's rows of a value that it has whole, made where the experts
  /// begin. A view of tokens is one of the sliced tokens.
  Value part(Value whole) {
    Value &known = sliced[whole];
    if (known)
      return known;
    RankedTensorType type = tensor(whole);
    SmallVector<int64_t> shape(type.getShape());
    shape[0] /= ranks;
    Operation *maker = whole.getDefiningOp();
    if (auto view = dyn_cast_or_null<aten::ViewOp>(maker);
        view && shape[0] * ranks != tokens &&
        rowsOf(view.getSelf()) == tokens) {
      Value from = part(view.getSelf());
      b.setInsertionPoint(view->isBeforeInBlock(flat) ? flat.getOperation()
                                                      : maker);
      replaced.insert(view);
      return sliced[whole] =
                 mark(aten::ViewOp::create(b, view.getLoc(), from, shape));
    }
    if (maker && !maker->isBeforeInBlock(flat))
      b.setInsertionPointAfter(maker);
    else
      b.setInsertionPoint(flat);
    return sliced[whole] = mark(sharding::SliceOp::create(
               b, location, type.clone(shape), whole, 0, axis, 1, false));
  }

  Value mark(Value value) {
    parts.insert(value);
    return value;
  }

  LogicalResult rewrite(Operation *op) {
    for (OpOperand &operand : op->getOpOperands()) {
      Value value = operand.get();
      if (parts.contains(value) || isa<aten::GroupedMmOp>(op))
        continue;
      // What is picked from by token, and the numbers of the rows.
      if (isa<aten::EmbeddingOp>(op) && operand.getOperandNumber() == 0) {
        if (rowsOf(value) % tokens != 0)
          return op->emitOpError("picks rows of ")
                 << rowsOf(value) << ", which are not those of " << tokens
                 << " tokens";
        operand.set(part(value));
      } else if (auto numbers = value.getDefiningOp<aten::ArangeOp>()) {
        b.setInsertionPoint(op);
        replaced.insert(numbers);
        operand.set(mark(aten::ArangeOp::create(
            b, numbers.getLoc(), numbers.getStart(), numbers.getEnd() / ranks,
            numbers.getStep(), numbers.getDtype())));
      }
    }
    if (auto sum = dyn_cast<aten::SumDimOp>(op);
        sum && tensor(sum.getSelf()).getRank() == 3) {
      gather(sum);
      return success();
    }
    if (op->hasTrait<OpTrait::IsTerminator>())
      return op->emitOpError("returns rows of a part of the tokens");
    if (auto view = dyn_cast<aten::ViewOp>(op)) {
      SmallVector<int64_t> size(view.getSize());
      if (size.empty() || size[0] % ranks != 0)
        return op->emitOpError("makes another shape of a part of the tokens");
      size[0] /= ranks;
      view.setSize(size);
    }
    for (Value result : op->getResults()) {
      if (rowsOf(result) % ranks != 0)
        return op->emitOpError("makes other rows of a part of the tokens");
      SmallVector<int64_t> shape(tensor(result).getShape());
      shape[0] /= ranks;
      result.setType(tensor(result).clone(shape));
      mark(result);
    }
    return success();
  }

  /// The sum over a token's experts is what all ranks read.
  void gather(aten::SumDimOp sum) {
    Value made = sum.getResult();
    const RankedTensorType whole = tensor(made);
    SmallVector<int64_t> shape(whole.getShape());
    shape[0] /= ranks;
    made.setType(whole.clone(shape));
    b.setInsertionPointAfter(sum);
    Value all = sharding::AllGatherOp::create(b, location, whole, made, 0, axis,
                                              1, false);
    made.replaceAllUsesExcept(all, all.getDefiningOp());
  }

  aten::SortStableOp sort;
  aten::ViewOp flat; // the experts that tokens chose, in one list
  StringRef axis;
  int64_t ranks, tokens = 0;
  OpBuilder b;
  const Location location;
  DenseSet<Value> parts;         // whose first dimension is of a part
  DenseMap<Value, Value> sliced; // by what is whole
  llvm::SetVector<Operation *> replaced;
};

} // namespace

LogicalResult sliceTokens(func::FuncOp function, sharding::MeshOp mesh,
                          StringRef axis) {
  llvm::SetVector<Operation *> sorts;
  for (auto product : function.getOps<aten::GroupedMmOp>()) {
    auto ends = product.getOffs().getDefiningOp<aten::SearchsortedTensorOp>();
    auto sort =
        ends ? ends.getSortedSequence().getDefiningOp<aten::SortStableOp>()
             : aten::SortStableOp();
    if (!sort)
      return product.emitOpError("is of rows that are not sorted by expert");
    sorts.insert(sort);
  }
  for (Operation *sort : sorts)
    if (failed(Slicer(cast<aten::SortStableOp>(sort), axis, mesh.axisSize(axis))
                   .run()))
      return failure();
  return success();
}

} // namespace accel
