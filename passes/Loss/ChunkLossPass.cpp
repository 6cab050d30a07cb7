//===- ChunkLossPass.cpp - chunk-loss -------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Aten/Random.h"
#include "dialects/Sharding/Sharding.h"
#include "passes/Frameworks/JobFramework.h"
#include "passes/Loss/ChunkLoss.h"

#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace accel;

namespace {

struct ChunkLossPass
    : PassWrapper<ChunkLossPass, OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ChunkLossPass)
  StringRef getArgument() const final { return "chunk-loss"; }
  StringRef getDescription() const final {
    return "cut the loss into the pieces that were decided";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<aten::AtenDialect, sharding::ShardingDialect>();
  }

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
      auto eval = function->getAttrOfType<FlatSymbolRefAttr>(aten::evalAttr);
      if (eval && failed(chunkLoss(symbols.lookup<func::FuncOp>(eval.getAttr()),
                                   decision.getChunks())))
        return signalPassFailure();
    }
  }
};

} // namespace

std::unique_ptr<Pass> accel::createChunkLossPass() {
  return std::make_unique<ChunkLossPass>();
}
