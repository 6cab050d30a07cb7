//===- ShardingRuleLosses.cpp - Losses on shards ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Fused.h"
#include "dialects/Aten/ShardingRuleBuilder.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel;
using namespace accel::aten;

/// `reduction` as ATen counts: 0 none, 1 the mean, 2 the sum.
static MaybeRule elementLossRule(Operation *op, int64_t reduction) {
  if (reduction == 0)
    return pointwiseRule(op);
  RuleBuilder b(op);
  SmallVector<int> factors = b.factorsOf(shapeOf(op->getOperand(0)));
  for (int factor : factors)
    b.partial(0, factor, reduction == 1 ? Combine::Mean : Combine::Sum);
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    b.broadcast(i, factors);
  return b.take();
}

/// The gradient of a mean divides by the number of elements that it sees.
static MaybeRule elementLossBackwardRule(Operation *op, int64_t reduction) {
  if (reduction != 1)
    return pointwiseRule(op);
  return RuleBuilder(op).take();
}

static MaybeRule nllRule(NllLossForwardOp op) {
  RuleBuilder b(op);
  const int rows = b.factor(shapeOf(op.getSelf())[0]),
            classes = b.blocked(shapeOf(op.getSelf())[1], Form::Rows);
  if (op.getReduction() == 1)
    b.block(rows, Form::Counted);
  return b.operand(0, {rows, classes})
      .operand(1, {rows})
      .partial(0, rows)
      .partial(0, classes)
      .partial(1, rows)
      .take();
}

static MaybeRule nllBackwardRule(NllLossBackwardOp op) {
  RuleBuilder b(op);
  const int rows = b.factor(shapeOf(op.getSelf())[0]),
            classes = b.blocked(shapeOf(op.getSelf())[1], Form::Rows);
  return b.operand(1, {rows, classes})
      .operand(2, {rows})
      .result(0, {rows, classes})
      .take();
}

/// Statistics of the classes, the target's logit among them, are combined
/// inside: the loss of a row is whole.
static MaybeRule crossEntropyRule(CrossEntropyOp op) {
  RuleBuilder b(op);
  const int rows = b.blocked(shapeOf(op.getLogits())[0], Form::Counted),
            classes = b.blocked(shapeOf(op.getLogits())[1], Form::Statistics);
  return b.operand(0, {rows, classes})
      .operand(1, {rows})
      .result(1, {rows})
      .partial(0, rows)
      .take();
}

static MaybeRule crossEntropyBackwardRule(Operation *op, Value logits) {
  RuleBuilder b(op);
  const int rows = b.blocked(shapeOf(logits)[0], Form::Counted),
            classes = b.blocked(shapeOf(logits)[1], Form::Rows);
  return b.operand(0, {rows, classes})
      .operand(2, {rows})
      .operand(3, {rows})
      .result(0, {rows, classes})
      .take();
}

/// Rotary embedding exchanges the halves of the last dimension.
static MaybeRule rotaryRule(RotaryOp op) {
  for (Value table : {op.getCos(), op.getSin()})
    if (shapeOf(table).size() > shapeOf(op.getSelf()).size())
      return std::nullopt;
  RuleBuilder b(op);
  SmallVector<int> factors = b.factorsOf(shapeOf(op.getSelf()).drop_back());
  factors.push_back(-1);
  return b.operand(0, factors)
      .broadcast(1, factors)
      .broadcast(2, factors)
      .result(0, factors)
      .take();
}

MaybeRule aten::lossRule(Operation *op) {
  return llvm::TypeSwitch<Operation *, MaybeRule>(op)
      .Case<MseLossOp, SmoothL1LossOp, HuberLossOp, BinaryCrossEntropyOp,
            BinaryCrossEntropyWithLogitsOp>(
          [](auto op) { return elementLossRule(op, op.getReduction()); })
      .Case<MseLossBackwardOp, SmoothL1LossBackwardOp, HuberLossBackwardOp,
            BinaryCrossEntropyBackwardOp>([](auto op) {
        return elementLossBackwardRule(op, op.getReduction());
      })
      .Case([](NllLossForwardOp op) { return nllRule(op); })
      .Case([](NllLossBackwardOp op) { return nllBackwardRule(op); })
      .Case([](CrossEntropyOp op) { return crossEntropyRule(op); })
      .Case<CrossEntropyBackwardOp, CrossEntropyInPlaceBackwardOp>(
          [](auto op) { return crossEntropyBackwardRule(op, op.getLogits()); })
      .Case([](RotaryOp op) { return rotaryRule(op); })
      .Default(MaybeRule());
}
