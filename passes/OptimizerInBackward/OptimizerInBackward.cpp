//===- OptimizerInBackward.cpp - When the optimizer updates a unit --------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/Sharding/Sharding.h"
#include "passes/Frameworks/JobFramework.h"

#include "mlir/Pass/Pass.h"

namespace accel {
#define GEN_PASS_DEF_OPTIMIZERINBACKWARDPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;

namespace {

struct OptimizerInBackwardPass
    : accel::impl::OptimizerInBackwardPassBase<OptimizerInBackwardPass> {
  void runOnOperation() override {
    auto job = sharding::findOnly<sharding::JobOp>(getOperation());
    auto request = sharding::findRequest(getOperation(), "update");
    if (!job) {
      getOperation().emitError("update needs a sharding.job");
      return signalPassFailure();
    }
    if (const char *why = frameworkOf(getOperation()).updatesAtEnd()) {
      job.setUpdateAttr(sharding::UpdateAttr::get(
          &getContext(), sharding::UpdateMode::AtEnd,
          sharding::BecauseAttr::get(&getContext(), why)));
      return;
    }
    if (auto offload = job.getOffloadAttr();
        offload && offload.getOptimizer()) {
      job.setUpdateAttr(sharding::UpdateAttr::get(
          &getContext(), sharding::UpdateMode::AtEnd,
          sharding::BecauseAttr::get(
              &getContext(), "the host updates while the device is at what it "
                             "was given before")));
      return;
    }
    auto late = request ? request.getValue().getAs<BoolAttr>("at_end")
                        : BoolAttr::get(&getContext(), false);
    if (!late) {
      request.emitOpError("needs 'at_end', true or false");
      return signalPassFailure();
    }
    job.setUpdateAttr(sharding::UpdateAttr::get(
        &getContext(),
        late.getValue() ? sharding::UpdateMode::AtEnd
                        : sharding::UpdateMode::Inline,
        request ? request.getBecause()
                : sharding::BecauseAttr::get(
                      &getContext(), "default: gradients are freed as soon as "
                                     "a unit is updated")));
  }
};

} // namespace
