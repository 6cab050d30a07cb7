//===- Activity.cpp - Which gradients are wanted ----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Differentiate/Activity.h"

#include "dialects/Aten/Aten.h"

using namespace mlir;
using namespace accel;

bool accel::isFloatTensor(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && isa<FloatType>(type.getElementType());
}

/// Operands whose values matter; of some only the type does.
static ValueRange valueOperands(Operation *op) {
  if (isa<aten::ZerosLikeOp, aten::FullLikeOp>(op))
    return {};
  if (isa<aten::TypeAsOp>(op))
    return op->getOperands().take_front(1);
  return op->getOperands();
}

DenseSet<Value> accel::activeValues(func::FuncOp function,
                                    ArrayRef<bool> wanted) {
  DenseSet<Value> active;
  for (auto [arg, want] : llvm::zip(function.getArguments(), wanted))
    if (want && isFloatTensor(arg))
      active.insert(arg);
  for (Operation &op : function.getBody().front().without_terminator())
    if (llvm::any_of(valueOperands(&op),
                     [&](Value v) { return active.contains(v); }))
      for (Value result : op.getResults())
        if (isFloatTensor(result))
          active.insert(result);
  return active;
}

SmallVector<bool> accel::activeResults(func::FuncOp function,
                                       ArrayRef<bool> wanted) {
  DenseSet<Value> active = activeValues(function, wanted);
  return llvm::map_to_vector(
      function.getBody().front().getTerminator()->getOperands(),
      [&](Value v) { return active.contains(v); });
}

SmallVector<bool> accel::usefulArguments(func::FuncOp function,
                                         ArrayRef<bool> wanted,
                                         ArrayRef<bool> tangents) {
  Block &body = function.getBody().front();
  DenseSet<Value> active = activeValues(function, wanted), useful;
  for (auto [value, tangent] :
       llvm::zip(body.getTerminator()->getOperands(), tangents))
    if (tangent && active.contains(value))
      useful.insert(value);
  for (Operation &op : llvm::reverse(body.without_terminator()))
    if (llvm::any_of(op.getResults(),
                     [&](Value v) { return useful.contains(v); }))
      for (Value operand : valueOperands(&op))
        if (active.contains(operand))
          useful.insert(operand);
  return llvm::map_to_vector(function.getArguments(),
                             [&](Value v) { return useful.contains(v); });
}
