//===- Prefetch.cpp - How far ahead units are gathered --------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/Sharding/Sharding.h"
#include "passes/Frameworks/JobFramework.h"

#include "mlir/Pass/Pass.h"

namespace accel {
#define GEN_PASS_DEF_PREFETCHPASS
#include "passes/Passes.h.inc"
} // namespace accel

using namespace mlir;
using namespace accel;

namespace {

struct PrefetchPass : accel::impl::PrefetchPassBase<PrefetchPass> {
  void runOnOperation() override {
    auto job = sharding::findOnly<sharding::JobOp>(getOperation());
    auto request = sharding::findRequest(getOperation(), "prefetch");
    if (!job) {
      getOperation().emitError("prefetch needs a sharding.job");
      return signalPassFailure();
    }
    const auto usual = frameworkOf(getOperation()).prefetch();
    if (!usual)
      return; // no unit is gathered ahead of its use
    int64_t forward = usual->value.forward, backward = usual->value.backward;
    for (auto [name, depth] :
         {std::pair{StringRef("forward"), &forward}, {"backward", &backward}}) {
      Attribute asked = request ? request.getValue().get(name) : Attribute();
      if (!asked)
        continue;
      auto number = dyn_cast<IntegerAttr>(asked);
      if (!number) {
        request.emitOpError() << "has the depth " << asked << " for '" << name
                              << "', expected an integer";
        return signalPassFailure();
      }
      *depth = number.getInt();
    }
    if (forward < 0 || backward < 0) {
      request.emitOpError("asks for a negative depth");
      return signalPassFailure();
    }
    job.setPrefetchAttr(sharding::PrefetchAttr::get(
        &getContext(), forward, backward,
        request ? request.getBecause()
                : sharding::BecauseAttr::get(
                      &getContext(), std::string("default: ") + usual->why)));
  }
};

} // namespace
