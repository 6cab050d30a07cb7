//===- Reductions.cpp - Which reductions a backward waits for -------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/Sharding/Sharding.h"
#include "passes/Passes.h"

#include "mlir/Pass/Pass.h"

namespace accel {
#define GEN_PASS_DEF_REDUCTIONSPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;

namespace {

struct ReductionsPass : accel::impl::ReductionsPassBase<ReductionsPass> {
  void runOnOperation() override {
    auto job = sharding::findOnly<sharding::JobOp>(getOperation());
    auto request = sharding::findRequest(getOperation(), "reductions");
    if (!job) {
      getOperation().emitError("reductions needs a sharding.job");
      return signalPassFailure();
    }
    if (!request)
      return; // each runs beside the next backward
    auto await = request.getValue().getAs<IntegerAttr>("await");
    if (!await || await.getInt() < 0) {
      request.emitOpError("needs 'await', at least 0");
      return signalPassFailure();
    }
    job.setReductionsAttr(sharding::ReductionsAttr::get(
        &getContext(), await.getInt(), request.getBecause()));
  }
};

} // namespace
