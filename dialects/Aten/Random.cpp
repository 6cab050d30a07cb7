//===- Random.cpp - Operators that draw numbers -----------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Random.h"

#include "dialects/Aten/BackwardBuilder.h"
#include "dialects/Aten/Dropped.h"
#include "dialects/Aten/Types.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel;
using namespace accel::aten;

static LogicalResult verifyProbability(Operation *op, const llvm::APFloat &p) {
  const double value = p.convertToDouble();
  if (value >= 0 && value <= 1)
    return success();
  return op->emitOpError("drops with a probability between 0 and 1, not ")
         << value;
}

LogicalResult DropoutOp::verify() {
  if (static_cast<int64_t>(getKey()) < 0)
    return emitOpError("needs a key of 0 or more, not ")
           << static_cast<int64_t>(getKey());
  return verifyProbability(*this, getP());
}

template <typename OpT> static LogicalResult verifyDropped(OpT op) {
  if (static_cast<int64_t>(op.getDropoutKey()) < 0)
    return op.emitOpError("needs a dropout_key of 0 or more, not ")
           << static_cast<int64_t>(op.getDropoutKey());
  return verifyProbability(op, op.getDropoutP());
}
LogicalResult DroppedFlashAttentionOp::verify() { return verifyDropped(*this); }
LogicalResult DroppedEfficientAttentionOp::verify() {
  return verifyDropped(*this);
}

/// Philox 4x32-10 is ten rounds of two products for four elements.
Cost DropoutOp::getCost() {
  const double bytes = tensorBytes(getType());
  return {20.0 * tensorType(getResult()).getNumElements(), 2 * bytes};
}

/// On CPUs the numbers are drawn in registers; elsewhere a mask is filled.
int64_t DropoutOp::getWorkspaceBytes(Device device) {
  if (device == Device::Cpu)
    return 0;
  return (tensorType(getResult()).getNumElements() + 63) / 64 * 64;
}

LogicalResult DropoutOp::buildBackward(BackwardBuilder &b,
                                       ArrayRef<Value> grads,
                                       ArrayRef<bool> needed,
                                       MutableArrayRef<Value> operandGrads) {
  operandGrads[0] = b.create<DropoutOp>(grads[0], getP(), getKey());
  return success();
}

LogicalResult
NativeDropoutOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc,
                                  Adaptor adaptor,
                                  SmallVectorImpl<Type> &results) {
  RankedTensorType self = tensorType(adaptor.getSelf());
  Type mask = adaptor.getMaskType();
  if (!mask.isInteger(1) && mask != self.getElementType())
    return emitOptionalError(loc, "the mask is i1 or of the input's type ",
                             self.getElementType(), ", not ", mask);
  results.append({self, self.clone(mask)});
  return success();
}

LogicalResult
NativeDropoutOp::buildBackward(BackwardBuilder &b, ArrayRef<Value> grads,
                               ArrayRef<bool> needed,
                               MutableArrayRef<Value> operandGrads) {
  if (!grads[0])
    return success();
  const double p = getP().convertToDouble();
  const double scale = p < 1 ? 1 / (1 - p) : 0;
  operandGrads[0] = b.create<NativeDropoutBackwardOp>(grads[0], getMask(),
                                                      llvm::APFloat(scale));
  return success();
}

LogicalResult NativeDropoutBackwardOp::inferReturnTypes(
    MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
    SmallVectorImpl<Type> &results) {
  RankedTensorType grad = tensorType(adaptor.getGradOutput());
  if (tensorType(adaptor.getMask()).getShape() != grad.getShape())
    return emitOptionalError(loc, "the mask ", adaptor.getMask().getType(),
                             " is not of the gradient's shape ", grad);
  results.push_back(grad);
  return success();
}

int64_t NativeDropoutBackwardOp::getWorkspaceBytes(Device) { return 0; }

LogicalResult aten::verifyKeys(func::FuncOp function) {
  llvm::DenseMap<int64_t, Operation *> first;
  WalkResult result = function.walk([&](Operation *op) {
    std::optional<int64_t> key = randomKey(op);
    if (!key)
      return WalkResult::advance();
    auto [at, isNew] = first.try_emplace(*key, op);
    if (isNew)
      return WalkResult::advance();
    op->emitOpError("has the key ")
            .append(*key, " of another random operation of the function, so "
                          "both would draw the same numbers")
            .attachNote(at->second->getLoc())
        << "the other one";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

std::optional<int64_t> aten::randomKey(Operation *op) {
  if (auto dropout = dyn_cast<DropoutOp>(op))
    return dropout.getKey();
  if (auto attention = dyn_cast<ScaledDotProductAttentionOp>(op))
    if (!attention.getDropoutP().isZero())
      return attention.getDropoutKey();
  return llvm::TypeSwitch<Operation *, std::optional<int64_t>>(op)
      .Case<DroppedFlashAttentionOp, DroppedFlashAttentionBackwardOp,
            DroppedEfficientAttentionOp, DroppedEfficientAttentionBackwardOp>(
          [](auto attention) { return attention.getDropoutKey(); })
      .Default(std::nullopt);
}

void aten::removeRandom(func::FuncOp function) {
  SmallVector<DropoutOp> dropped;
  function.walk([&](Operation *op) {
    if (auto dropout = dyn_cast<DropoutOp>(op)) {
      dropped.push_back(dropout);
    } else if (auto attention = dyn_cast<ScaledDotProductAttentionOp>(op)) {
      attention.setDropoutP(llvm::APFloat(0.0));
      attention.setDropoutKey(-1);
    }
  });
  for (DropoutOp op : dropped) {
    op.getResult().replaceAllUsesWith(op.getSelf());
    op.erase();
  }
}
