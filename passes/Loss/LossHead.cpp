//===- LossHead.cpp - The loss in chunks ----------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Loss/LossHead.h"

#include "dialects/Aten/Aten.h"
#include "dialects/Aten/Types.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace accel;
using accel::aten::tensorType;

namespace {

class Chunker {
public:
  Chunker(func::FuncOp function, int64_t chunks)
      : function(function), chunks(chunks), builder(function.getContext()) {}

  LogicalResult run() {
    if (failed(findLoss()) || failed(findMatmuls()))
      return failure();
    if (chunks > rowCount)
      return loss.emitOpError("has ")
             << rowCount << " rows, which cannot be cut into " << chunks
             << " chunks";
    builder.setInsertionPoint(loss);
    Value count = countLabels(), total;
    for (int64_t i = 0; i < chunks; ++i) {
      Value part = chunk(i);
      total = total ? make<aten::AddTensorOp>(total, part) : part;
    }
    loss.getOutput().replaceAllUsesWith(make<aten::DivTensorOp>(total, count));
    loss.erase();
    for (Operation *op : llvm::reverse(between))
      op->erase();
    for (aten::TOp weight : turned)
      if (weight.use_empty())
        weight.erase();
    return success();
  }

private:
  template <typename OpT, typename... Args> Value make(Args &&...args) {
    return OpT::create(builder, loss.getLoc(), std::forward<Args>(args)...)
        ->getResult(0);
  }

  LogicalResult findLoss() {
    for (Value value :
         function.getBody().front().getTerminator()->getOperands())
      if (auto op = value.getDefiningOp<aten::NllLossForwardOp>())
        if (value == op.getOutput())
          loss = op;
    if (!loss || loss.getReduction() != 1)
      return function.emitOpError("cannot be cut into chunks: it does not end "
                                  "in a mean cross-entropy");
    if (!loss.getTotalWeight().use_empty())
      return loss.emitOpError("cannot be cut into chunks: the number of its "
                              "labels is read elsewhere");
    rowCount = tensorType(loss.getSelf()).getDimSize(0);
    return success();
  }

  bool isByRows(Value value) const {
    RankedTensorType type = tensorType(value);
    return type.getRank() == 2 && type.getDimSize(0) == rowCount;
  }

  /// Everything between the matmul's rows and the loss, in order.
  LogicalResult findMatmuls() {
    auto softmax = loss.getSelf().getDefiningOp<aten::LogSoftmaxOp>();
    if (!softmax || softmax.getDim() != 1)
      return loss.emitOpError("cannot be cut into chunks: it is not of a "
                              "log-softmax over the vocabulary");
    llvm::SetVector<Operation *> found;
    llvm::SetVector<Value> ends;
    SmallVector<Operation *> worklist{softmax};
    while (!worklist.empty()) {
      Operation *op = worklist.pop_back_val();
      if (!found.insert(op))
        continue;
      if (isMatmul(op)) {
        ends.insert(rowsOf(op));
        continue;
      }
      auto aten = dyn_cast<aten::AtenOpInterface>(op);
      if (op != softmax &&
          (!aten || aten.getCategory() != aten::Category::Pointwise ||
           isa<aten::DropoutOp>(op)))
        return op->emitOpError("stands between the matmul and the loss, and "
                               "is not computed row by row, so the loss "
                               "cannot be cut into chunks");
      for (Value operand : op->getOperands())
        if (isByRows(operand)) {
          if (!operand.getDefiningOp())
            return op->emitOpError("reads logits that come from outside, so "
                                   "the loss cannot be cut into chunks");
          worklist.push_back(operand.getDefiningOp());
        }
    }
    if (ends.empty())
      return loss.emitOpError("cannot be cut into chunks: its logits are no "
                              "matmul");
    if (failed(findRows(ends, found)))
      return failure();
    for (Operation &op : function.getBody().front())
      if (found.contains(&op))
        between.push_back(&op);
    for (Operation *op : between)
      for (Operation *user : op->getUsers())
        if (user != loss && !found.contains(user))
          return op->emitOpError("is read elsewhere, so the loss cannot be cut "
                                 "into chunks");
    return success();
  }

  static bool isMatmul(Operation *op) {
    return isa_and_nonnull<aten::MmOp, aten::AddmmOp>(op);
  }
  static Value rowsOf(Operation *matmul) {
    return matmul->getOperand(isa<aten::MmOp>(matmul) ? 0 : 1);
  }

  /// All matmuls must start from the same rows: those of an adapter are two in
  /// a row.
  LogicalResult findRows(llvm::SetVector<Value> ends,
                         llvm::SetVector<Operation *> &found) {
    while (ends.size() > 1) {
      auto last = llvm::find_if(
          ends, [](Value end) { return isMatmul(end.getDefiningOp()); });
      if (last == ends.end()) {
        for (Value end : ends)
          if (end.getDefiningOp<aten::DropoutOp>())
            return end.getDefiningOp()->emitOpError(
                "stands between the rows and the loss, and is not computed row "
                "by row, so the loss cannot be cut into chunks");
        return loss.emitOpError("is of matmuls of different rows, so it "
                                "cannot be cut into chunks");
      }
      Operation *matmul = last->getDefiningOp();
      found.insert(matmul);
      ends.remove(*last);
      ends.insert(rowsOf(matmul));
    }
    rows = ends.front();
    for (Operation *op : found)
      if (isMatmul(op))
        if (auto t = op->getOperands().back().getDefiningOp<aten::TOp>())
          turned.insert(t);
    return success();
  }

  /// How many labels count, 0-d in fp32: exact to 2^24.
  Value countLabels() {
    const int64_t ignored = static_cast<int64_t>(loss.getIgnoreIndex());
    Value counts = make<aten::GtScalarOp>(
        loss.getTarget(), TypedAttr(builder.getI64IntegerAttr(ignored)));
    Type type = tensorType(loss.getOutput()).getElementType();
    counts = make<aten::ToCopyOp>(counts, type);
    return make<aten::SumDimOp>(counts, ArrayRef<int64_t>{0}, false);
  }

  Value slice(Value value, int64_t index) {
    const int64_t begin = rowCount * index / chunks,
                  end = rowCount * (index + 1) / chunks;
    Value result = make<aten::SliceTensorOp>(
        value, uint64_t(0), uint64_t(begin), uint64_t(end), uint64_t(1));
    result.getDefiningOp()->setAttr(chunkAttr,
                                    builder.getI64IntegerAttr(index));
    return result;
  }

  /// The sum of the losses of one chunk.
  Value chunk(int64_t index) {
    IRMapping mapping;
    mapping.map(rows, slice(rows, index));
    Value target = slice(loss.getTarget(), index);
    const int64_t size = tensorType(target).getDimSize(0);
    // A view of its own for each matmul, so that the matmuls' gradients are
    // the weight's and not its transpose's.
    for (aten::TOp weight : turned)
      builder.clone(*weight, mapping);
    for (Operation *op : between) {
      Operation *copy = builder.clone(*op, mapping);
      auto type = tensorType(op->getResult(0));
      copy->getResult(0).setType(type.clone({size, type.getDimSize(1)}));
    }
    return make<aten::NllLossForwardOp>(mapping.lookup(loss.getSelf()), target,
                                        loss.getIgnoreIndex(), uint64_t(2));
  }

  func::FuncOp function;
  int64_t chunks;
  OpBuilder builder;
  aten::NllLossForwardOp loss;
  int64_t rowCount = 0;
  Value rows;
  llvm::SetVector<aten::TOp> turned; // the weights
  SmallVector<Operation *> between;
};

} // namespace

LogicalResult accel::chunkLoss(func::FuncOp function, int64_t chunks) {
  if (chunks == 1)
    return success();
  if (failed(Chunker(function, chunks).run()))
    return failure();
  function->setAttr(fusedAttr, UnitAttr::get(function.getContext()));
  return success();
}
