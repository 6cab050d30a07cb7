//===- ShardingRuleMovement.cpp - Moved data on shards ----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Operators that copy elements to other places: along the dimensions where they
// do, shards would need each other's.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/ShardingRuleBuilder.h"

#include "llvm/ADT/TypeSwitch.h"

#include <numeric>

using namespace mlir;
using namespace accel;
using namespace accel::aten;

ShardingRule aten::slicedRule(Operation *op, int64_t dim, int64_t size,
                              int64_t start, int64_t end, int64_t step) {
  // The slice of each shard is the shard of the slice where both ends lie
  // between pieces.
  const int64_t piece = std::gcd(std::gcd(start, end), size);
  if (step != 1 || start == end || piece < 2)
    return alongRule(op, dim);
  ShardingRule rule = piecewiseRule(op, dim, piece);
  const int inner = rule.factors.size() - 1;
  rule.sizes.push_back({"start", 0, -1, inner});
  rule.sizes.push_back({"end", 0, -1, inner});
  return rule;
}

/// Parts of a dimension one after another: what divides all of them is a piece.
static ShardingRule joinedRule(Operation *op, int64_t dim) {
  int64_t piece = 0;
  for (Value value : op->getOperands())
    piece = std::gcd(piece, shapeOf(value)[dim]);
  for (Value value : op->getResults())
    piece = std::gcd(piece, shapeOf(value)[dim]);
  for (Value value : op->getOperands())
    if (shapeOf(value)[dim] == 0)
      piece = 0;
  return piece < 2 ? alongRule(op, dim) : piecewiseRule(op, dim, piece);
}

/// Dimensions that `pad`, last dimension first, leaves alone.
static MaybeRule padRule(ConstantPadNdOp op) {
  ArrayRef<int64_t> pad = op.getPad();
  const int64_t rank = shapeOf(op.getSelf()).size();
  SmallVector<int64_t> padded;
  for (size_t i = 0; i + 1 < pad.size(); i += 2)
    if (pad[i] || pad[i + 1])
      padded.push_back(rank - 1 - i / 2);
  return alongRule(op, padded);
}

/// The gradient, which has lost the dimension `dim`, fills a place of it.
static MaybeRule aroundRule(Operation *op, unsigned dim) {
  RuleBuilder b(op);
  for (auto [d, size] : llvm::enumerate(shapeOf(op->getResult(0))))
    if (d != dim) {
      const int factor = b.factor(size);
      b.result(0, d, factor).operand(0, d - (d > dim), factor);
    }
  return b.sizes("input_sizes").take();
}

static MaybeRule repeatRule(RepeatOp op) {
  ArrayRef<int64_t> repeats = op.getRepeats(), shape = shapeOf(op.getSelf());
  RuleBuilder b(op);
  const size_t added = repeats.size() - shape.size();
  for (auto [d, size] : llvm::enumerate(shape))
    if (repeats[d + added] == 1) {
      const int factor = b.factor(size);
      b.operand(0, d, factor).result(0, d + added, factor);
    }
  return b.take();
}

/// `src` takes the place of positions of `dim`, or of one with `removed`.
static MaybeRule placedRule(Operation *op, unsigned dim, bool removed) {
  RuleBuilder b(op);
  for (auto [d, size] : llvm::enumerate(shapeOf(op->getOperand(0))))
    if (d != dim) {
      const int factor = b.factor(size);
      b.operand(0, d, factor).result(0, d, factor);
      b.operand(1, d - (removed && d > dim), factor);
    }
  return b.take();
}

MaybeRule aten::movementRule(Operation *op) {
  return llvm::TypeSwitch<Operation *, MaybeRule>(op)
      .Case<CatOp, GluOp, GluBackwardOp>(
          [](auto op) { return joinedRule(op, op.getDim()); })
      .Case([](SliceBackwardOp op) {
        ShardingRule rule =
            slicedRule(op, op.getDim(), shapeOf(op.getResult())[op.getDim()],
                       op.getStart(), op.getEnd(), op.getStep());
        rule.sizes.push_back({"input_sizes"});
        return rule;
      })
      .Case([](SelectBackwardOp op) { return aroundRule(op, op.getDim()); })
      .Case([](ConstantPadNdOp op) { return padRule(op); })
      .Case([](FlipOp op) { return alongRule(op, op.getDims()); })
      .Case([](RollOp op) {
        // Without dimensions all elements are one row.
        SmallVector<int64_t> all =
            llvm::to_vector(llvm::seq<int64_t>(shapeOf(op.getSelf()).size()));
        return alongRule(op, op.getDims().empty() ? ArrayRef<int64_t>(all)
                                                  : op.getDims());
      })
      .Case([](RepeatOp op) { return repeatRule(op); })
      .Case([](SliceScatterOp op) {
        return placedRule(op, op.getDim(), /*removed=*/false);
      })
      .Case([](SelectScatterOp op) {
        return placedRule(op, op.getDim(), /*removed=*/true);
      })
      .Case<TrilOp, TriuOp>([](auto op) {
        RuleBuilder b(op);
        SmallVector<int> factors = b.factorsOf(shapeOf(op.getSelf()));
        for (int factor : ArrayRef<int>(factors).take_back(2))
          b.block(factor, Form::Positions);
        return b.operand(0, factors).result(0, factors).take();
      })
      .Case([](ArangeOp op) {
        RuleBuilder b(op);
        return b
            .result(0, b.blocked(shapeOf(op.getResult())[0], Form::Positions))
            .take();
      })
      .Default(MaybeRule());
}
