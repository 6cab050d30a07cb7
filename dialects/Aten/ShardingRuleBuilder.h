//===- ShardingRuleBuilder.h - How sharding rules are written ---*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// For the files that define sharding rules, and for no other header.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_DIALECTS_ATEN_SHARDINGRULEBUILDER_H
#define ACCEL_DIALECTS_ATEN_SHARDINGRULEBUILDER_H

#include "dialects/Aten/Aten.h"
#include "dialects/Aten/Rules.h"
#include "dialects/Aten/ShardingRule.h"

namespace accel::aten {

using MaybeRule = std::optional<ShardingRule>;

/// Rules by class of operator; nullopt for operators of another class.
MaybeRule viewRule(mlir::Operation *op);      // ShardingRuleViews.cpp
MaybeRule movementRule(mlir::Operation *op);  // ShardingRuleMovement.cpp
MaybeRule indexRule(mlir::Operation *op);     // ShardingRuleIndex.cpp
MaybeRule productRule(mlir::Operation *op);   // ShardingRuleProducts.cpp
MaybeRule attentionRule(mlir::Operation *op); // ShardingRuleAttention.cpp
MaybeRule reductionRule(mlir::Operation *op); // ShardingRuleReduce.cpp
MaybeRule normRule(mlir::Operation *op);      // ShardingRuleNorms.cpp
MaybeRule lossRule(mlir::Operation *op);      // ShardingRuleLosses.cpp
MaybeRule mambaRule(mlir::Operation *op);     // Mamba.cpp

class RuleBuilder {
public:
  explicit RuleBuilder(mlir::Operation *op) : op(op) {
    for (mlir::Value value : op->getOperands())
      rule.operands.emplace_back().dims.resize(tensorType(value).getRank());
    for (mlir::Value value : op->getResults())
      rule.results.emplace_back().dims.resize(tensorType(value).getRank());
  }

  int factor(int64_t size) {
    rule.factors.emplace_back().size = size;
    return rule.factors.size() - 1;
  }
  /// Which shards only in a form of the operator.
  int blocked(int64_t size, Form form) {
    const int made = factor(size);
    block(made, form);
    return made;
  }

  /// A factor for each size.
  llvm::SmallVector<int> factorsOf(llvm::ArrayRef<int64_t> shape) {
    llvm::SmallVector<int> made;
    for (int64_t size : shape)
      made.push_back(factor(size));
    return made;
  }

  RuleBuilder &operand(unsigned i, unsigned dim, int factor) {
    rule.operands[i].dims[dim].push_back(factor);
    return *this;
  }
  RuleBuilder &result(unsigned i, unsigned dim, int factor) {
    rule.results[i].dims[dim].push_back(factor);
    return *this;
  }
  /// The factors of all dimensions, in order; -1 for a dimension that has none.
  RuleBuilder &operand(unsigned i, llvm::ArrayRef<int> factors) {
    fill(rule.operands[i], factors);
    return *this;
  }
  RuleBuilder &result(unsigned i, llvm::ArrayRef<int> factors) {
    fill(rule.results[i], factors);
    return *this;
  }
  TensorFactors &operands(unsigned i) { return rule.operands[i]; }
  TensorFactors &results(unsigned i) { return rule.results[i]; }

  /// Operand `i`, whose last dimensions broadcast to those with `factors`.
  RuleBuilder &broadcast(unsigned i, llvm::ArrayRef<int> factors) {
    llvm::ArrayRef<int64_t> shape = tensorType(op->getOperand(i)).getShape();
    for (size_t d = 0; d < shape.size(); ++d) {
      const int f = factors[factors.size() - shape.size() + d];
      if (f >= 0 && shape[d] == rule.factors[f].size)
        operand(i, d, f);
    }
    return *this;
  }

  /// Result `i` is partial over `factor`.
  RuleBuilder &partial(unsigned i, int factor, Combine combine = Combine::Sum) {
    Factor &of = rule.factors[factor];
    if (of.kind == FactorKind::Parallel)
      of.kind = FactorKind::Reduction;
    of.combine = combine;
    rule.results[i].partial.push_back(factor);
    return *this;
  }
  RuleBuilder &once(unsigned operand) {
    rule.once.push_back(operand);
    return *this;
  }
  RuleBuilder &sizes(llvm::StringRef attribute, int dim = -1,
                     unsigned result = 0) {
    rule.sizes.push_back({attribute, result, dim, -1});
    return *this;
  }
  /// Of which every rank needs all.
  int wholeFactor(int64_t size) {
    const int made = factor(size);
    rule.factors[made].kind = FactorKind::Whole;
    return made;
  }
  RuleBuilder &block(int factor, Form form) {
    rule.factors[factor].kind = FactorKind::Blocked;
    rule.factors[factor].form = form;
    return *this;
  }

  ShardingRule take() { return std::move(rule); }

private:
  static void fill(TensorFactors &tensor, llvm::ArrayRef<int> factors) {
    for (auto [dim, factor] : llvm::zip_equal(tensor.dims, factors))
      if (factor >= 0)
        dim.push_back(factor);
  }

  mlir::Operation *op;
  ShardingRule rule;
};

/// Between a dimension of `size` and its elements [start, end).
ShardingRule slicedRule(mlir::Operation *op, int64_t dim, int64_t size,
                        int64_t start, int64_t end, int64_t step);

/// Operands that broadcast to the shape of the results, element by element.
ShardingRule pointwiseRule(mlir::Operation *op);

/// Operands and results have the same shape but for the dimension `dim`, which
/// is made of pieces of `piece` elements that stay whole or are each cut alike:
/// the last factor.
ShardingRule piecewiseRule(mlir::Operation *op, unsigned dim, int64_t piece);

/// Each operand and result has the shape of the first, but for the dimensions
/// `whole`, which every rank needs and whose sizes may differ.
ShardingRule alongRule(mlir::Operation *op, llvm::ArrayRef<int64_t> whole);

} // namespace accel::aten

#endif // ACCEL_DIALECTS_ATEN_SHARDINGRULEBUILDER_H
