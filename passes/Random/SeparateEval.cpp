//===- SeparateEval.cpp - Functions for evaluation ------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Random/SeparateEval.h"

#include "dialects/Aten/Random.h"
#include "dialects/Sharding/Sharding.h"
#include "passes/Frameworks/JobFramework.h"

#include "mlir/Pass/Pass.h"

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

struct SeparateEvalPass
    : PassWrapper<SeparateEvalPass, OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SeparateEvalPass)
  StringRef getArgument() const final { return "separate-eval"; }
  StringRef getDescription() const final {
    return "give functions with dropout a copy without it, for evaluation";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<aten::AtenDialect>();
  }

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

std::unique_ptr<Pass> accel::createSeparateEvalPass() {
  return std::make_unique<SeparateEvalPass>();
}
