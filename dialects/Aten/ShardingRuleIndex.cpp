//===- ShardingRuleIndex.cpp - Positions and tables on shards ---*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/ShardingRuleBuilder.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel;
using namespace accel::aten;

/// Each rank looks up the indices that are rows of its part of the table, and
/// has zeros for others; the sum is the whole look-up.
static MaybeRule embeddingRule(EmbeddingOp op) {
  RuleBuilder b(op);
  SmallVector<int> ids = b.factorsOf(shapeOf(op.getIndices()));
  const int rows = b.blocked(shapeOf(op.getWeight())[0], Form::Rows);
  const int width = b.factor(shapeOf(op.getWeight())[1]);
  b.operand(0, {rows, width}).operand(1, ids);
  ids.push_back(width);
  return b.result(0, ids).partial(0, rows).take();
}

static MaybeRule embeddingBackwardRule(EmbeddingDenseBackwardOp op) {
  RuleBuilder b(op);
  SmallVector<int> ids = b.factorsOf(shapeOf(op.getIndices()));
  const int rows = b.blocked(shapeOf(op.getResult())[0], Form::Rows);
  const int width = b.factor(shapeOf(op.getResult())[1]);
  b.operand(1, ids).result(0, {rows, width}).sizes("num_weights", 0);
  for (int factor : ids)
    b.partial(0, factor);
  ids.push_back(width);
  return b.operand(0, ids).take();
}

/// Indices of `dim` in tensors of one rank: other dimensions where all sizes
/// agree go along.
static MaybeRule alignedRule(Operation *op, unsigned dim) {
  RuleBuilder b(op);
  for (auto [d, size] : llvm::enumerate(shapeOf(op->getOperand(0)))) {
    auto agrees = [d = d, size = size](Value value) {
      return shapeOf(value)[d] == size;
    };
    if (d == dim || !llvm::all_of(op->getOperands(), agrees) ||
        !llvm::all_of(op->getResults(), agrees))
      continue;
    const int factor = b.factor(size);
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      b.operand(i, d, factor);
    for (unsigned i = 0; i < op->getNumResults(); ++i)
      b.result(i, d, factor);
  }
  return b.take();
}

/// gather: besides, each position of the index is for itself along `dim`.
static MaybeRule gatherRule(GatherOp op) {
  MaybeRule rule = alignedRule(op, op.getDim());
  const unsigned dim = op.getDim();
  rule->factors.emplace_back().size = shapeOf(op.getIndex())[dim];
  const int factor = rule->factors.size() - 1;
  rule->operands[1].dims[dim].push_back(factor);
  rule->results[0].dims[dim].push_back(factor);
  return rule;
}

static MaybeRule indexSelectRule(IndexSelectOp op) {
  RuleBuilder b(op);
  for (auto [d, size] : llvm::enumerate(shapeOf(op.getResult()))) {
    const int factor = b.factor(size);
    b.result(0, d, factor);
    if (d == op.getDim())
      b.operand(1, 0, factor);
    else
      b.operand(0, d, factor);
  }
  return b.take();
}

static MaybeRule indexAddRule(IndexAddOp op) {
  RuleBuilder b(op);
  for (auto [d, size] : llvm::enumerate(shapeOf(op.getSelf())))
    if (d != op.getDim()) {
      const int factor = b.factor(size);
      b.operand(0, d, factor).operand(2, d, factor).result(0, d, factor);
    }
  return b.take();
}

/// Where the broadcast indices stand in the result of index.Tensor, and their
/// rank.
static std::pair<size_t, size_t> placeOfIndices(ArrayRef<int64_t> dims,
                                                ValueRange indices) {
  size_t rank = 0;
  for (Value index : indices)
    rank = std::max(rank, shapeOf(index).size());
  bool neighbours = true;
  for (size_t i = 1; i < dims.size(); ++i)
    neighbours &= dims[i] == dims[i - 1] + 1;
  return {neighbours ? dims.front() : 0, rank};
}

static MaybeRule indexTensorRule(IndexTensorOp op) {
  RuleBuilder b(op);
  auto [at, rank] = placeOfIndices(op.getDims(), op.getIndices());
  ArrayRef<int64_t> shape = shapeOf(op.getResult());
  SmallVector<int> positions = b.factorsOf(shape.slice(at, rank));
  for (auto [i, factor] : llvm::enumerate(positions))
    b.result(0, at + i, factor);
  for (unsigned i = 0; i < op.getIndices().size(); ++i)
    b.broadcast(1 + i, positions);
  size_t d = 0;
  for (auto [from, size] : llvm::enumerate(shapeOf(op.getSelf()))) {
    if (llvm::is_contained(op.getDims(), static_cast<int64_t>(from)))
      continue;
    if (d == at)
      d += rank;
    const int factor = b.factor(size);
    b.operand(0, from, factor).result(0, d++, factor);
  }
  return b.take();
}

/// Only what is not indexed goes along: two positions may be the same.
static MaybeRule indexPutRule(IndexPutOp op) {
  RuleBuilder b(op);
  auto [at, rank] = placeOfIndices(op.getDims(), op.getIndices());
  SmallVector<int> values(at == 0 ? rank : 0, -1);
  for (auto [d, size] : llvm::enumerate(shapeOf(op.getSelf()))) {
    if (llvm::is_contained(op.getDims(), static_cast<int64_t>(d)))
      continue;
    if (values.size() == at && at != 0)
      values.append(rank, -1);
    const int factor = b.factor(size);
    b.operand(0, d, factor).result(0, d, factor);
    values.push_back(factor);
  }
  if (values.size() == at && at != 0)
    values.append(rank, -1);
  return b.broadcast(1, values).take();
}

MaybeRule aten::indexRule(Operation *op) {
  return llvm::TypeSwitch<Operation *, MaybeRule>(op)
      .Case([](EmbeddingOp op) { return embeddingRule(op); })
      .Case(
          [](EmbeddingDenseBackwardOp op) { return embeddingBackwardRule(op); })
      .Case([](GatherOp op) { return gatherRule(op); })
      .Case<ScatterSrcOp, ScatterAddOp, ScatterValueOp>(
          [](auto op) { return alignedRule(op, op.getDim()); })
      .Case([](ValueSelectingReductionBackwardOp op) {
        MaybeRule rule = alignedRule(op, op.getDim());
        rule->sizes.push_back({"sizes"});
        return rule;
      })
      .Case([](IndexSelectOp op) { return indexSelectRule(op); })
      .Case([](IndexAddOp op) { return indexAddRule(op); })
      .Case([](IndexTensorOp op) { return indexTensorRule(op); })
      .Case([](IndexPutOp op) { return indexPutRule(op); })
      .Case([](SearchsortedTensorOp op) {
        RuleBuilder b(op); // each value for itself in the whole sequence
        SmallVector<int> factors = b.factorsOf(shapeOf(op.getSelf()));
        return b.operand(1, factors).result(0, factors).take();
      })
      .Default(MaybeRule());
}
