//===- ShardingRule.cpp - How operators run on shards -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/ShardingRuleBuilder.h"

using namespace mlir;
using namespace accel;
using namespace accel::aten;

llvm::StringRef aten::stringifyFactorKind(FactorKind kind) {
  switch (kind) {
  case FactorKind::Parallel:
    return "parallel";
  case FactorKind::Reduction:
    return "reduction";
  case FactorKind::Blocked:
    return "blocked";
  case FactorKind::Whole:
    return "whole";
  }
  llvm_unreachable("all kinds are listed");
}

llvm::StringRef aten::stringifyCombine(Combine combine) {
  switch (combine) {
  case Combine::Sum:
    return "sum";
  case Combine::Mean:
    return "mean";
  case Combine::Max:
    return "max";
  case Combine::Min:
    return "min";
  }
  llvm_unreachable("all combinations are listed");
}

llvm::StringRef aten::stringifyForm(Form form) {
  switch (form) {
  case Form::None:
    return "none";
  case Form::Rows:
    return "rows";
  case Form::Statistics:
    return "statistics";
  case Form::Counted:
    return "counted";
  case Form::Positions:
    return "positions";
  case Form::Keys:
    return "keys";
  case Form::Context:
    return "context";
  case Form::Heads:
    return "heads";
  }
  llvm_unreachable("all forms are listed");
}

ShardingRule aten::pointwiseRule(Operation *op) {
  RuleBuilder b(op);
  SmallVector<int> factors = b.factorsOf(shapeOf(op->getResult(0)));
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    b.result(i, factors);
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    b.broadcast(i, factors);
  return b.take();
}

ShardingRule aten::alongRule(Operation *op, ArrayRef<int64_t> whole) {
  RuleBuilder b(op);
  Value first = op->getNumOperands() ? op->getOperand(0) : op->getResult(0);
  SmallVector<int> factors;
  for (auto [d, size] : llvm::enumerate(shapeOf(first)))
    factors.push_back(llvm::is_contained(whole, static_cast<int64_t>(d))
                          ? -1
                          : b.factor(size));
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    b.operand(i, factors);
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    b.result(i, factors);
  return b.take();
}

ShardingRule aten::piecewiseRule(Operation *op, unsigned dim, int64_t piece) {
  RuleBuilder b(op);
  SmallVector<int> factors;
  for (auto [d, size] : llvm::enumerate(shapeOf(op->getOperand(0))))
    factors.push_back(d == dim ? -1 : b.factor(size));
  llvm::SmallDenseMap<int64_t, int> around; // by how many pieces
  SmallVector<std::pair<TensorFactors *, int64_t>> tensors;
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    b.operand(i, factors);
    tensors.push_back({&b.operands(i), shapeOf(op->getOperand(i))[dim]});
  }
  for (unsigned i = 0; i < op->getNumResults(); ++i) {
    b.result(i, factors);
    tensors.push_back({&b.results(i), shapeOf(op->getResult(i))[dim]});
  }
  for (auto [tensor, size] : tensors)
    if (const int64_t pieces = size / piece; pieces != 1) {
      auto [it, isNew] = around.try_emplace(pieces, 0);
      if (isNew)
        it->second = b.wholeFactor(pieces);
      tensor->dims[dim].push_back(it->second);
    }
  const int inner = b.factor(piece);
  for (auto [tensor, size] : tensors)
    tensor->dims[dim].push_back(inner);
  return b.take();
}

/// Random operators draw by an element's position in the whole tensor.
static MaybeRule randomRule(Operation *op) {
  if (!isa<DropoutOp>(op))
    return std::nullopt;
  RuleBuilder b(op);
  SmallVector<int> factors = b.factorsOf(shapeOf(op->getResult(0)));
  for (int factor : factors)
    b.block(factor, Form::Positions);
  return b.operand(0, factors).result(0, factors).take();
}

/// Of one number per element: no operand, or one of the result's shape.
static MaybeRule fillRule(Operation *op) {
  if (isa<ZerosLikeOp, FullLikeOp, CloneOp>(op))
    return pointwiseRule(op);
  if (!isa<FullOp>(op))
    return std::nullopt;
  RuleBuilder b(op);
  return b.result(0, b.factorsOf(shapeOf(op->getResult(0))))
      .sizes("size")
      .take();
}

MaybeRule aten::shardingRule(Operation *op) {
  auto aten = dyn_cast<AtenOpInterface>(op);
  if (!aten || op->getNumResults() == 0)
    return std::nullopt;
  for (auto classRule :
       {fillRule, randomRule, viewRule, movementRule, indexRule, productRule,
        attentionRule, reductionRule, normRule, lossRule, mambaRule})
    if (MaybeRule rule = classRule(op))
      return rule;
  if (isa<TypeAsOp>(op)) { // of its second operand only the element type counts
    RuleBuilder b(op);
    SmallVector<int> factors = b.factorsOf(shapeOf(op->getResult(0)));
    return b.operand(0, factors).result(0, factors).take();
  }
  if (aten.getCategory() == Category::Pointwise)
    return pointwiseRule(op);
  return std::nullopt;
}
