//===- ShardingRuleViews.cpp - Views on shards ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/ShardingRuleBuilder.h"

#include "llvm/ADT/TypeSwitch.h"

#include <numeric>

using namespace mlir;
using namespace accel;
using namespace accel::aten;

/// Result dimension i is operand dimension `from[i]`.
static ShardingRule reordered(Operation *op, ArrayRef<int64_t> from) {
  RuleBuilder b(op);
  SmallVector<int> factors = b.factorsOf(shapeOf(op->getOperand(0)));
  b.operand(0, factors);
  for (auto [i, dim] : llvm::enumerate(from))
    b.result(0, i, factors[dim]);
  return b.take();
}

/// Dimensions in row-major order are cut where both shapes have a boundary,
/// from the outermost on: [6, 4] seen as [2, 12] has the factors 2, 3 and 4.
/// Where boundaries cross ([4, 6] seen as [6, 4]), the common divisor is a
/// factor and what is left of both must be whole.
static ShardingRule reshaped(Operation *op) {
  RuleBuilder b(op);
  ArrayRef<int64_t> from = shapeOf(op->getOperand(0)),
                    to = shapeOf(op->getResult(0));
  b.sizes("size");
  if (llvm::is_contained(from, 0)) // no element, so no order of them
    return b.take();
  size_t i = 0, j = 0;
  int64_t left = 1, right = 1; // of dimensions i - 1 and j - 1
  while (true) {
    while (left == 1 && i < from.size())
      left = from[i++];
    while (right == 1 && j < to.size())
      right = to[j++];
    if (left == 1 || right == 1)
      break; // both are: the products are equal
    const int64_t common = std::gcd(left, right);
    if (common == 1) {
      // Whole up to the next boundary that both have.
      int64_t a = left, c = right;
      while (a != c)
        if (a < c)
          a *= from[i++];
        else
          c *= to[j++];
      left = right = 1;
      continue;
    }
    const int factor = b.factor(common);
    b.operand(0, i - 1, factor).result(0, j - 1, factor);
    left /= common;
    right /= common;
    // What is left of one dimension lies inside the common factor, and counts
    // on with the next of the other.
  }
  return b.take();
}

static ShardingRule expanded(Operation *op) {
  RuleBuilder b(op);
  SmallVector<int> factors = b.factorsOf(shapeOf(op->getResult(0)));
  return b.result(0, factors).broadcast(0, factors).sizes("size").take();
}

MaybeRule aten::viewRule(Operation *op) {
  return llvm::TypeSwitch<Operation *, MaybeRule>(op)
      .Case([](TOp op) { return reordered(op, {1, 0}); })
      .Case([](TransposeIntOp op) {
        SmallVector<int64_t> from(shapeOf(op.getSelf()).size());
        std::iota(from.begin(), from.end(), 0);
        std::swap(from[op.getDim0()], from[op.getDim1()]);
        return reordered(op, from);
      })
      .Case([](PermuteOp op) { return reordered(op, op.getDims()); })
      .Case([](ViewOp op) { return reshaped(op); })
      .Case([](ExpandOp op) { return expanded(op); })
      .Case([](UnsqueezeOp op) {
        RuleBuilder b(op);
        for (auto [d, size] : llvm::enumerate(shapeOf(op.getSelf()))) {
          const int factor = b.factor(size);
          b.operand(0, d, factor);
          b.result(0, d + (d >= op.getDim()), factor);
        }
        return b.take();
      })
      .Case<SqueezeDimOp, SelectIntOp>([](auto op) {
        RuleBuilder b(op);
        const size_t dim = op.getDim();
        for (auto [d, size] : llvm::enumerate(shapeOf(op.getSelf())))
          if (d != dim) {
            const int factor = b.factor(size);
            b.operand(0, d, factor).result(0, d - (d > dim), factor);
          }
        return b.take();
      })
      .Case([](SliceTensorOp op) {
        const int64_t dim = op.getDim();
        if (shapeOf(op.getSelf())[dim] != shapeOf(op.getResult())[dim])
          return slicedRule(op, dim, shapeOf(op.getSelf())[dim], op.getStart(),
                            op.getEnd(), op.getStep());
        RuleBuilder b(op); // all of the dimension
        SmallVector<int> factors = b.factorsOf(shapeOf(op.getSelf()));
        return b.operand(0, factors)
            .result(0, factors)
            .sizes("end", dim)
            .take();
      })
      .Default(MaybeRule());
}
