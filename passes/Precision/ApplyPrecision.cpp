//===- ApplyPrecision.cpp - Retype segment functions ------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Precision/ApplyPrecision.h"

#include "dialects/Aten/Aten.h"

#include "mlir/Interfaces/InferTypeOpInterface.h"

using namespace mlir;
using namespace accel;

/// `type` with the element type `compute` where it is floating point.
static Type retype(Type type, Type compute) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !isa<FloatType>(tensor.getElementType()))
    return type;
  return tensor.clone(compute);
}

static LogicalResult inferAgain(Operation *op, Type compute) {
  auto infer = dyn_cast<InferTypeOpInterface>(op);
  if (!infer) {
    // An operator that is not modelled computes in the type of its inputs.
    for (Value result : op->getResults())
      result.setType(retype(result.getType(), compute));
    return success();
  }
  SmallVector<Type> types;
  if (failed(infer.inferReturnTypes(op->getContext(), op->getLoc(),
                                    op->getOperands(), op->getAttrDictionary(),
                                    op->getPropertiesStorage(),
                                    op->getRegions(), types)))
    return op->emitOpError("cannot compute in ") << compute;
  for (auto [result, type] : llvm::zip(op->getResults(), types))
    result.setType(type);
  return success();
}

LogicalResult accel::applyPrecision(func::FuncOp function, Type compute) {
  Block &body = function.getBody().front();
  for (BlockArgument arg : body.getArguments())
    arg.setType(retype(arg.getType(), compute));
  for (Operation &op : llvm::make_early_inc_range(body.without_terminator())) {
    if (failed(inferAgain(&op, compute)))
      return failure();
    if (!isa<aten::TypeAsOp, aten::ToCopyOp>(op))
      continue;
    Value from = op.getOperand(0), result = op.getResult(0);
    if (from.getType() == result.getType()) {
      result.replaceAllUsesWith(from);
      op.erase();
    } else if (isa<aten::TypeAsOp>(op)) {
      OpBuilder b(&op);
      Type type = cast<RankedTensorType>(result.getType()).getElementType();
      Value copy = aten::ToCopyOp::create(b, op.getLoc(), from, type);
      result.replaceAllUsesWith(copy);
      op.erase();
    }
  }
  function.setFunctionType(
      FunctionType::get(function.getContext(), body.getArgumentTypes(),
                        body.getTerminator()->getOperandTypes()));
  return success();
}

LogicalResult accel::retypeCalls(sharding::GraphOp graph) {
  SymbolTableCollection symbols;
  for (auto call : graph.getBody().getOps<sharding::CallOp>()) {
    auto callee = symbols.lookupNearestSymbolFrom<func::FuncOp>(
        call, call.getCalleeAttr());
    if (!callee)
      return call.emitOpError("calls '")
             << call.getCallee() << "', which is no function";
    unsigned operand = 0;
    for (BlockArgument arg : callee.getArguments()) {
      if (callee.getArgAttr(arg.getArgNumber(), sharding::paramArgAttr))
        continue;
      if (operand >= call.getOperands().size())
        return call.emitOpError("passes too few operands");
      Type given = call.getOperands()[operand].getType();
      if (given != arg.getType())
        return call.emitOpError("passes ")
               << given << " as operand " << operand << ", but '"
               << call.getCallee() << "' takes " << arg.getType();
      ++operand;
    }
    if (callee.getNumResults() != call.getNumResults())
      return call.emitOpError("has ")
             << call.getNumResults() << " results, but '" << call.getCallee()
             << "' returns " << callee.getNumResults();
    for (auto [result, type] :
         llvm::zip(call.getResults(), callee.getResultTypes()))
      result.setType(type);
  }
  return success();
}
