//===- ShardingRuleReduce.cpp - Reductions on shards ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/ShardingRuleBuilder.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel;
using namespace accel::aten;

/// Over `dims` (none: over all). Where what ranks have cannot be combined,
/// those dimensions must be whole.
static MaybeRule reduceRule(Operation *op, ArrayRef<int64_t> dims, bool keepdim,
                            std::optional<Combine> combine) {
  RuleBuilder b(op);
  size_t at = 0;
  for (auto [d, size] : llvm::enumerate(shapeOf(op->getOperand(0)))) {
    const bool reduced =
        dims.empty() || llvm::is_contained(dims, static_cast<int64_t>(d));
    if (reduced && combine) {
      const int factor = b.factor(size);
      b.operand(0, d, factor);
      for (unsigned i = 0; i < op->getNumResults(); ++i)
        b.partial(i, factor, *combine);
    } else if (!reduced) {
      const int factor = b.factor(size);
      b.operand(0, d, factor);
      for (unsigned i = 0; i < op->getNumResults(); ++i)
        b.result(i, at, factor);
    }
    at += !reduced || keepdim;
  }
  return b.take();
}

/// Softmax and its like: along `dim` every element counts in each result.
static MaybeRule statisticsRule(Operation *op, unsigned dim) {
  RuleBuilder b(op);
  SmallVector<int> factors = b.factorsOf(shapeOf(op->getResult(0)));
  b.block(factors[dim], Form::Statistics);
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    b.operand(i, factors);
  return b.result(0, factors).take();
}

MaybeRule aten::reductionRule(Operation *op) {
  return llvm::TypeSwitch<Operation *, MaybeRule>(op)
      .Case([](SumDimOp op) {
        return reduceRule(op, op.getDim(), op.getKeepdim(), Combine::Sum);
      })
      .Case([](MeanDimOp op) {
        return reduceRule(op, op.getDim(), op.getKeepdim(), Combine::Mean);
      })
      .Case<AmaxOp, AnyDimsOp>([](auto op) {
        return reduceRule(op, op.getDim(), op.getKeepdim(), Combine::Max);
      })
      .Case<AminOp, AllDimsOp>([](auto op) {
        return reduceRule(op, op.getDim(), op.getKeepdim(), Combine::Min);
      })
      .Case<LinalgVectorNormOp, VarCorrectionOp, LogsumexpOp>([](auto op) {
        return reduceRule(op, op.getDim(), op.getKeepdim(), std::nullopt);
      })
      .Case<ProdDimIntOp, MaxDimOp, MinDimOp, ArgmaxOp, ArgminOp>([](auto op) {
        return reduceRule(op, static_cast<int64_t>(op.getDim()),
                          op.getKeepdim(), std::nullopt);
      })
      .Case<CumsumOp, SortStableOp, TopkOp>([](auto op) {
        return alongRule(op, static_cast<int64_t>(op.getDim()));
      })
      .Case<SoftmaxOp, LogSoftmaxOp, SoftmaxBackwardDataOp,
            LogSoftmaxBackwardDataOp>(
          [](auto op) { return statisticsRule(op, op.getDim()); })
      .Case([](HistcOp op) {
        RuleBuilder b(op); // counts of what a rank has
        SmallVector<int> factors = b.factorsOf(shapeOf(op.getSelf()));
        for (int factor : factors)
          b.partial(0, factor);
        return b.operand(0, factors).take();
      })
      .Default(MaybeRule());
}
