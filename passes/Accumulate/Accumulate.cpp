//===- Accumulate.cpp - What is kept between micro-batches ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/Sharding/Sharding.h"
#include "passes/Frameworks/JobFramework.h"

#include "mlir/Pass/Pass.h"

namespace accel {
#define GEN_PASS_DEF_ACCUMULATEPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;

namespace {

struct AccumulatePass : accel::impl::AccumulatePassBase<AccumulatePass> {
  void runOnOperation() override {
    auto job = sharding::findOnly<sharding::JobOp>(getOperation());
    auto request = sharding::findRequest(getOperation(), "accumulation");
    if (!job) {
      getOperation().emitError("accumulate needs a sharding.job");
      return signalPassFailure();
    }
    int64_t steps = 1;
    if (request) {
      auto asked = request.getValue().getAs<IntegerAttr>("steps");
      if (!asked || asked.getInt() < 1) {
        request.emitOpError("needs 'steps', at least 1");
        return signalPassFailure();
      }
      steps = asked.getInt();
    }
    const frameworks::Framework &framework = frameworkOf(getOperation());
    auto mode = framework.accumulation(versionsOf(getOperation()));
    bool keep = mode.value == frameworks::AccumulationMode::KeepUnsharded;
    auto why = sharding::BecauseAttr::get(
        &getContext(),
        std::string("default: ") +
            (request || keep ? mode.why : "one micro-batch a step"));
    Attribute asked =
        request ? request.getValue().get("keep_unsharded") : Attribute();
    if (auto flag = dyn_cast_if_present<BoolAttr>(asked))
      keep = flag.getValue();
    else if (asked)
      keep = true;
    // A request of accel-run's is about the mode too; others' is about the
    // number of micro-batches, unless it names a mode.
    if (request && (asked || !framework.eager() || steps == 1))
      why = request.getBecause();
    job.setAccumulationAttr(sharding::AccumulationAttr::get(
        &getContext(), steps,
        keep ? sharding::AccumulationMode::KeepUnsharded
             : sharding::AccumulationMode::ReduceEach,
        why));
  }
};

} // namespace
