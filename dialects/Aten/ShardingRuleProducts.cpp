//===- ShardingRuleProducts.cpp - Matmuls on shards -------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/ShardingRuleBuilder.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel;
using namespace accel::aten;

/// [.., M, K] times [.., K, N], operands `a` and `a` + 1; operand 0 is added
/// where `a` is 1.
static MaybeRule matmulRule(Operation *op, unsigned a) {
  RuleBuilder b(op);
  ArrayRef<int64_t> left = shapeOf(op->getOperand(a)),
                    shape = shapeOf(op->getResult(0));
  SmallVector<int> result = b.factorsOf(shape);
  const int contracted = b.factor(left.back());
  SmallVector<int> first(result), second(result);
  first.back() = contracted;
  second[second.size() - 2] = contracted;
  b.operand(a, first).operand(a + 1, second).result(0, result);
  b.partial(0, contracted);
  if (a == 1)
    b.broadcast(0, result).once(0);
  return b.take();
}

/// Rows are sorted by group, and each group's rows are anywhere.
static MaybeRule groupedRule(GroupedMmOp op) {
  RuleBuilder b(op);
  ArrayRef<int64_t> left = shapeOf(op.getSelf()), right = shapeOf(op.getMat2());
  if (right.size() == 3) { // [S, K] times [G, K, N]
    const int k = b.factor(left[1]), n = b.factor(right[2]);
    b.operand(0, 1, k).operand(1, 1, k).operand(1, 2, n).result(0, 1, n);
    b.partial(0, k);
  } else if (left.size() == 2) { // [M, S] times [S, N]
    const int m = b.factor(left[0]), n = b.factor(right[1]);
    b.operand(0, 0, m).operand(1, 1, n).result(0, 1, m).result(0, 2, n);
  } else {
    return std::nullopt;
  }
  return b.take();
}

static MaybeRule convolutionRule(ConvolutionOp op) {
  RuleBuilder b(op);
  const int batch = b.factor(shapeOf(op.getInput())[0]);
  b.operand(0, 0, batch).result(0, 0, batch);
  if (static_cast<int64_t>(op.getGroups()) != 1)
    return b.take();
  const int in = b.factor(shapeOf(op.getInput())[1]),
            out = b.factor(shapeOf(op.getResult())[1]);
  const bool transposed = op.getTransposed();
  b.operand(0, 1, in).operand(1, transposed ? 0 : 1, in);
  b.operand(1, transposed ? 1 : 0, out).result(0, 1, out).partial(0, in);
  if (op.getBias())
    b.operand(2, 0, out).once(2);
  return b.take();
}

static MaybeRule convolutionBackwardRule(ConvolutionBackwardOp op) {
  RuleBuilder b(op);
  const int batch = b.factor(shapeOf(op.getInput())[0]);
  const bool plain = static_cast<int64_t>(op.getGroups()) == 1;
  const int in = plain ? b.factor(shapeOf(op.getInput())[1]) : -1,
            out = plain ? b.factor(shapeOf(op.getGradOutput())[1]) : -1;
  const unsigned inDim = op.getTransposed() ? 0 : 1;
  b.operand(0, 0, batch).operand(1, 0, batch);
  if (plain)
    b.operand(0, 1, out)
        .operand(1, 1, in)
        .operand(2, inDim, in)
        .operand(2, 1 - inDim, out);
  unsigned next = 0;
  if (op.getOutputMask()[0]) {
    b.result(next, 0, batch);
    if (plain)
      b.result(next, 1, in).partial(next, out);
    ++next;
  }
  if (op.getOutputMask()[1]) {
    if (plain)
      b.result(next, inDim, in).result(next, 1 - inDim, out);
    b.partial(next++, batch);
  }
  if (op.getOutputMask()[2]) {
    if (plain)
      b.result(next, 0, out);
    b.sizes("bias_sizes", -1, next).partial(next, batch);
  }
  return b.take();
}

MaybeRule aten::productRule(Operation *op) {
  return llvm::TypeSwitch<Operation *, MaybeRule>(op)
      .Case<MmOp, BmmOp>([](Operation *op) { return matmulRule(op, 0); })
      .Case<AddmmOp, BaddbmmOp>([](Operation *op) { return matmulRule(op, 1); })
      .Case([](MvOp op) {
        RuleBuilder b(op);
        const int m = b.factor(shapeOf(op.getSelf())[0]),
                  k = b.factor(shapeOf(op.getSelf())[1]);
        b.operand(0, {m, k}).operand(1, {k}).result(0, {m}).partial(0, k);
        return b.take();
      })
      .Case([](DotOp op) {
        RuleBuilder b(op);
        const int k = b.factor(shapeOf(op.getSelf())[0]);
        return b.operand(0, {k}).operand(1, {k}).partial(0, k).take();
      })
      .Case([](GroupedMmOp op) { return groupedRule(op); })
      .Case([](ConvolutionOp op) { return convolutionRule(op); })
      .Case(
          [](ConvolutionBackwardOp op) { return convolutionBackwardRule(op); })
      .Default(MaybeRule());
}
