//===- SeparateEval.cpp - Functions for evaluation ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

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

struct SeparateEvalPass : accel::impl::SeparateEvalPassBase<SeparateEvalPass> {
  void runOnOperation() override {
    if (frameworkOf(getOperation()).eager())
      return; // one training step is all that is asked of others
    SymbolTable symbols(getOperation());
    for (auto function :
         llvm::to_vector(getOperation().getOps<func::FuncOp>())) {
      if (function.isExternal() || !drawsNumbers(function))
        continue;
      if (failed(aten::verifyKeys(function)))
        return signalPassFailure();
      func::FuncOp copy = function.clone();
      copy.setName((function.getName() + ".eval").str());
      aten::removeRandom(copy);
      symbols.insert(copy, std::next(function->getIterator()));
      function->setAttr(aten::evalAttr,
                        FlatSymbolRefAttr::get(copy.getSymNameAttr()));
    }
  }
};

} // namespace
