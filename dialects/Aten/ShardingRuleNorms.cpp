//===- ShardingRuleNorms.cpp - Norms and windows on shards ------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/ShardingRuleBuilder.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel;
using namespace accel::aten;

/// Norms over the last dimension: rows are for themselves. Gradients of the
/// weight and the bias, of rank 1, are sums over rows.
static MaybeRule rowNormRule(Operation *op, Value self) {
  RuleBuilder b(op);
  const size_t rank = shapeOf(self).size();
  SmallVector<int> rows = b.factorsOf(shapeOf(self).drop_back());
  for (auto [i, value] : llvm::enumerate(op->getOperands()))
    if (rank > 1 && shapeOf(value).size() == rank)
      for (auto [d, factor] : llvm::enumerate(rows))
        b.operand(i, d, factor);
  for (auto [i, value] : llvm::enumerate(op->getResults()))
    for (auto [d, factor] : llvm::enumerate(rows))
      if (shapeOf(value).size() == rank)
        b.result(i, d, factor);
      else
        b.partial(i, factor);
  return b.take();
}

/// Batch norm: each channel is for itself; with `samples` so is each sample.
static MaybeRule channelNormRule(Operation *op, bool samples) {
  RuleBuilder b(op);
  ArrayRef<int64_t> shape = shapeOf(op->getOperand(0));
  const int channel = b.factor(shape[1]),
            sample = samples ? b.factor(shape[0]) : -1;
  auto visit = [&](unsigned i, Value value, auto put) {
    ArrayRef<int64_t> of = shapeOf(value);
    if (of.size() > 1) {
      put(i, 1, channel);
      if (samples)
        put(i, 0, sample);
    } else if (of[0] == shape[1]) {
      put(i, 0, channel);
    }
  };
  for (auto [i, value] : llvm::enumerate(op->getOperands()))
    visit(i, value, [&](unsigned i, unsigned d, int f) { b.operand(i, d, f); });
  for (auto [i, value] : llvm::enumerate(op->getResults()))
    visit(i, value, [&](unsigned i, unsigned d, int f) { b.result(i, d, f); });
  return b.take();
}

/// Group norm: each sample is for itself; gradients of the weight and the bias
/// are sums over samples.
static MaybeRule groupNormRule(Operation *op) {
  auto hasSamples = [](Value value) { return shapeOf(value).size() > 1; };
  // The count of samples is an attribute, which is local if a result has them.
  auto sized = llvm::find_if(op->getResults(), hasSamples);
  RuleBuilder b(op);
  if (sized == op->getResults().end())
    return b.take();
  const int sample = b.factor(shapeOf(op->getOperand(0))[0]);
  for (auto [i, value] : llvm::enumerate(op->getOperands()))
    if (hasSamples(value))
      b.operand(i, 0, sample);
  for (auto [i, value] : llvm::enumerate(op->getResults()))
    if (hasSamples(value))
      b.result(i, 0, sample);
    else
      b.partial(i, sample);
  return b.sizes("N", 0, cast<OpResult>(*sized).getResultNumber()).take();
}

/// Pooling and resizing: what lies before the last two dimensions is for
/// itself.
static MaybeRule windowRule(Operation *op) {
  RuleBuilder b(op);
  ArrayRef<int64_t> shape = shapeOf(op->getResult(0));
  for (auto [d, size] : llvm::enumerate(shape.drop_back(2))) {
    const int factor = b.factor(size);
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      b.operand(i, d, factor);
    for (unsigned i = 0; i < op->getNumResults(); ++i)
      b.result(i, d, factor);
  }
  if (isa<UpsampleNearest2dBackwardOp, UpsampleBilinear2dBackwardOp>(op))
    b.sizes("input_size");
  return b.take();
}

MaybeRule aten::normRule(Operation *op) {
  return llvm::TypeSwitch<Operation *, MaybeRule>(op)
      .Case<RmsNormOp, FusedRmsNormOp, LayerNormOp, NativeLayerNormOp,
            FusedRmsNormBackwardOp, NativeLayerNormBackwardOp>(
          [](auto op) { return rowNormRule(op, op.getSelf()); })
      .Case<BatchNormFunctionalOp, BatchNormNoStatsOp, BatchNormBackwardOp,
            BatchNormEvalBackwardOp>(
          [](Operation *op) { return channelNormRule(op, false); })
      .Case<BatchNormNoTrainingOp>(
          [](Operation *op) { return channelNormRule(op, true); })
      .Case<NativeGroupNormOp, NativeGroupNormBackwardOp>(
          [](Operation *op) { return groupNormRule(op); })
      .Case<MaxPool2dOp, MaxPool2dBackwardOp, AvgPool2dOp, AvgPool2dBackwardOp,
            AdaptiveAvgPool2dOp, AdaptiveAvgPool2dBackwardOp,
            UpsampleNearest2dOp, UpsampleNearest2dBackwardOp,
            UpsampleBilinear2dOp, UpsampleBilinear2dBackwardOp>(
          [](Operation *op) { return windowRule(op); })
      .Default(MaybeRule());
}
