//===- SeparateEval.cpp - Functions for evaluation ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/Random/SeparateEval.h"
#include "dialects/Aten/Aten.h"
#include "dialects/Aten/Random.h"
#include "dialects/Sharding/Sharding.h"
#include "passes/Frameworks/JobFramework.h"

#include "mlir/Pass/Pass.h"

namespace accel {
#define GEN_PASS_DEF_SEPARATEEVALPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;

namespace {

bool drawsNumbers(func::FuncOp function) {
  return function
      .walk([](Operation *op) {
        return aten::randomKey(op) ? WalkResult::interrupt()
                                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Returns, behind the other results, where the largest logit of each row is.
LogicalResult addPredictions(func::FuncOp function) {
  aten::NllLossForwardOp loss;
  function.walk([&](aten::NllLossForwardOp op) { loss = op; });
  auto scores =
      loss ? loss.getSelf().getDefiningOp<aten::LogSoftmaxOp>() : nullptr;
  if (!scores)
    return function.emitOpError(
        "has no predictions: its loss is no cross-entropy of logits");
  Operation *end = function.getBody().front().getTerminator();
  OpBuilder b(end);
  auto best = aten::ArgmaxOp::create(b, scores.getLoc(), scores.getSelf(),
                                     uint64_t(1), false);
  end->insertOperands(end->getNumOperands(), best->getResult(0));
  function.setFunctionType(
      b.getFunctionType(function.getArgumentTypes(), end->getOperandTypes()));
  return success();
}

/// The function that makes the loss.
func::FuncOp lossFunction(mlir::ModuleOp module, SymbolTable &symbols) {
  auto graph = sharding::findOnly<sharding::GraphOp>(module);
  auto call = graph ? graph.getBody()
                          .front()
                          .getTerminator()
                          ->getOperand(0)
                          .getDefiningOp<sharding::CallOp>()
                    : sharding::CallOp();
  return call ? symbols.lookup<func::FuncOp>(call.getCallee()) : func::FuncOp();
}

struct SeparateEvalPass : accel::impl::SeparateEvalPassBase<SeparateEvalPass> {
  void runOnOperation() override {
    if (frameworkOf(getOperation()).eager())
      return; // one training step is all that is asked of others
    SymbolTable symbols(getOperation());
    func::FuncOp predicting;
    if (sharding::findRequest(getOperation(), predictionsRequest))
      predicting = lossFunction(getOperation(), symbols);
    for (auto function :
         llvm::to_vector(getOperation().getOps<func::FuncOp>())) {
      if (function.isExternal() ||
          (!drawsNumbers(function) && function != predicting))
        continue;
      if (failed(aten::verifyKeys(function)))
        return signalPassFailure();
      func::FuncOp copy = function.clone();
      copy.setName((function.getName() + ".eval").str());
      aten::removeRandom(copy);
      if (function == predicting && failed(addPredictions(copy)))
        return signalPassFailure();
      symbols.insert(copy, std::next(function->getIterator()));
      function->setAttr(aten::evalAttr,
                        FlatSymbolRefAttr::get(copy.getSymNameAttr()));
    }
  }
};

} // namespace
