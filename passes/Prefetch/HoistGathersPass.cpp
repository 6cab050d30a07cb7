//===- HoistGathersPass.cpp - hoist-gathers -------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Prefetch/HoistGathersPass.h"

#include "dialects/Aten/Aten.h"
#include "dialects/Schedule/Schedule.h"
#include "dialects/Sharding/Sharding.h"
#include "passes/Prefetch/Overlap.h"
#include "passes/Schedule/ProgramPass.h"

#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace accel;

namespace {

struct HoistGathersPass
    : PassWrapper<HoistGathersPass, OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(HoistGathersPass)
  StringRef getArgument() const final { return "hoist-gathers"; }
  StringRef getDescription() const final {
    return "start all-gathers as early as the prefetch decision allows";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<schedule::ScheduleDialect>();
  }
  void runOnOperation() override {
    auto job = sharding::findOnly<sharding::JobOp>(getOperation());
    auto prefetch = job ? job.getPrefetchAttr() : sharding::PrefetchAttr();
    if (!prefetch) {
      getOperation().emitError("hoist-gathers needs a sharding.job with its "
                               "prefetch decision");
      return signalPassFailure();
    }
    if (failed(schedule::rewritePrograms(
            getOperation(), [&](const plan::Plan &, plan::Program &program) {
              schedule::hoistGathers(program, prefetch.getForward(),
                                     prefetch.getBackward());
            })))
      signalPassFailure();
  }
};

} // namespace

std::unique_ptr<Pass> accel::createHoistGathersPass() {
  return std::make_unique<HoistGathersPass>();
}
