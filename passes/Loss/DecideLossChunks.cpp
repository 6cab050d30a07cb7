//===- DecideLossChunks.cpp - In how many chunks the loss is computed -----===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/Sharding/Sharding.h"
#include "passes/Frameworks/JobFramework.h"
#include "passes/Loss/LossHead.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace accel {
#define GEN_PASS_DEF_DECIDELOSSCHUNKSPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;

namespace {

struct DecideLossChunksPass
    : accel::impl::DecideLossChunksPassBase<DecideLossChunksPass> {
  void runOnOperation() override {
    mlir::ModuleOp module = getOperation();
    auto request = sharding::findRequest(module, "loss");
    if (!request)
      return;
    auto chunks = request.getValue().getAs<IntegerAttr>("chunks");
    auto graph = sharding::findOnly<sharding::GraphOp>(module);
    const bool fused = static_cast<bool>(request.getValue().get("fused"));
    if ((!fused && (!chunks || chunks.getInt() < 1)) || !graph) {
      request.emitOpError(graph ? "needs 'chunks', 1 or more"
                                : "needs a sharding.graph");
      return signalPassFailure();
    }
    Value value = graph.getBody().front().getTerminator()->getOperand(0);
    auto call = value.getDefiningOp<sharding::CallOp>();
    if (!call || call != &*std::prev(graph.getBody().front().end(), 2)) {
      request.emitOpError("cuts the loss into chunks, but the loss is not what "
                          "the graph's last call returns");
      return signalPassFailure();
    }
    const int64_t count = fused ? fusedChunks(module, call) : chunks.getInt();
    // accel-run counts the rows when it cuts them.
    auto job = sharding::findOnly<sharding::JobOp>(module);
    const int64_t rows = job ? job.getMicroBatch() *
                                   std::max<int64_t>(1, job.getSequenceLength())
                             : count;
    if (frameworkOf(module).eager() && count > rows) {
      request.emitOpError("cuts the loss into ")
          << count << " chunks, but a micro-batch has " << rows << " rows";
      return signalPassFailure();
    }
    if (!fused || count > 1)
      call->setAttr(lossAttr, sharding::LossAttr::get(&getContext(), count,
                                                      request.getBecause()));
  }

private:
  /// As a fused kernel cuts the head's rows; 1 where the loss is not that of a
  /// head's weight.
  static int64_t fusedChunks(mlir::ModuleOp module, sharding::CallOp call) {
    auto job = sharding::findOnly<sharding::JobOp>(module);
    auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
    RankedTensorType weight;
    for (unsigned i = 0; callee && i < callee.getNumArguments(); ++i) {
      auto type = dyn_cast<RankedTensorType>(callee.getArgumentTypes()[i]);
      if (callee.getArgAttr(i, sharding::paramArgAttr) && type &&
          (!weight || type.getNumElements() > weight.getNumElements()))
        weight = type;
    }
    if (!job || job.getSequenceLength() <= 0 || !weight ||
        weight.getRank() != 2)
      return 1;
    return frameworks::fusedLossChunks(
        job.getMicroBatch() * job.getSequenceLength(), weight.getDimSize(1),
        weight.getDimSize(0));
  }
};

} // namespace
