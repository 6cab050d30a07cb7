//===- ApplyLossChunks.cpp - chunk-loss -----------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Random.h"
#include "dialects/Sharding/Sharding.h"
#include "passes/Frameworks/JobFramework.h"
#include "passes/Loss/LossHead.h"

#include "mlir/Pass/Pass.h"

namespace accel {
#define GEN_PASS_DEF_APPLYLOSSCHUNKSPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;

namespace {

struct ApplyLossChunksPass
    : accel::impl::ApplyLossChunksPassBase<ApplyLossChunksPass> {
  void runOnOperation() override {
    mlir::ModuleOp module = getOperation();
    auto graph = sharding::findOnly<sharding::GraphOp>(module);
    // Other frameworks have kernels of their own for a chunked loss.
    if (!graph || frameworkOf(module).eager())
      return;
    SymbolTable symbols(module);
    for (auto call : graph.getBody().getOps<sharding::CallOp>()) {
      auto decision = call->getAttrOfType<sharding::LossAttr>(lossAttr);
      if (!decision)
        continue;
      auto function = symbols.lookup<func::FuncOp>(call.getCallee());
      if (!function || function.isExternal()) {
        call.emitOpError("calls '")
            << call.getCallee() << "', which is no function with a body";
        return signalPassFailure();
      }
      if (failed(chunkLoss(function, decision.getChunks())))
        return signalPassFailure();
      auto name = function->getAttrOfType<FlatSymbolRefAttr>(aten::evalAttr);
      auto eval =
          name ? symbols.lookup<func::FuncOp>(name.getAttr()) : func::FuncOp();
      // Predictions are of all logits.
      if (eval && eval.getNumResults() == function.getNumResults() &&
          failed(chunkLoss(eval, decision.getChunks())))
        return signalPassFailure();
    }
  }
};

} // namespace
