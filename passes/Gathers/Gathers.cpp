//===- Gathers.cpp - Which gathers a backward holds back ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/Sharding/Sharding.h"
#include "passes/Passes.h"

#include "mlir/Pass/Pass.h"

namespace accel {
#define GEN_PASS_DEF_GATHERSPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;

namespace {

struct GathersPass : accel::impl::GathersPassBase<GathersPass> {
  void runOnOperation() override {
    auto job = sharding::findOnly<sharding::JobOp>(getOperation());
    auto request = sharding::findRequest(getOperation(), "gathers");
    if (!job) {
      getOperation().emitError("gathers needs a sharding.job");
      return signalPassFailure();
    }
    if (!request)
      return; // each starts as far ahead as units are prefetched
    auto held = request.getValue().getAs<IntegerAttr>("held");
    if (!held || held.getInt() < 0) {
      request.emitOpError("needs 'held', at least 0");
      return signalPassFailure();
    }
    job.setGathersAttr(sharding::GathersAttr::get(&getContext(), held.getInt(),
                                                  request.getBecause()));
  }
};

} // namespace
