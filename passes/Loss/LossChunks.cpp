//===- LossChunks.cpp - In how many pieces the loss is computed -----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Sharding/Sharding.h"
#include "passes/Loss/ChunkLoss.h"

#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace accel;

namespace {

struct LossChunksPass
    : PassWrapper<LossChunksPass, OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LossChunksPass)
  StringRef getArgument() const final { return "loss-chunks"; }
  StringRef getDescription() const final {
    return "decide in how many pieces the loss is computed";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<sharding::ShardingDialect>();
  }

  void runOnOperation() override {
    mlir::ModuleOp module = getOperation();
    auto request = sharding::findRequest(module, "loss");
    if (!request)
      return;
    auto chunks = request.getValue().getAs<IntegerAttr>("chunks");
    auto graph = sharding::findOnly<sharding::GraphOp>(module);
    if (!chunks || chunks.getInt() < 1 || !graph) {
      request.emitOpError(graph ? "needs 'chunks', 1 or more"
                                : "needs a sharding.graph");
      return signalPassFailure();
    }
    Value value = graph.getBody().front().getTerminator()->getOperand(0);
    auto call = value.getDefiningOp<sharding::CallOp>();
    if (!call || call != &*std::prev(graph.getBody().front().end(), 2)) {
      request.emitOpError("cuts the loss into pieces, but the loss is not what "
                          "the graph's last call returns");
      return signalPassFailure();
    }
    call->setAttr(lossAttr,
                  sharding::LossAttr::get(&getContext(), chunks.getInt(),
                                          request.getBecause()));
  }
};

} // namespace

std::unique_ptr<Pass> accel::createLossChunksPass() {
  return std::make_unique<LossChunksPass>();
}
