//===- SinkAwaitsPass.cpp - sink-awaits -----------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Prefetch/SinkAwaitsPass.h"

#include "dialects/Aten/Aten.h"
#include "dialects/Schedule/Schedule.h"
#include "dialects/Sharding/Sharding.h"
#include "passes/Prefetch/Overlap.h"
#include "passes/Schedule/ProgramPass.h"

#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace accel;

namespace {

struct SinkAwaitsPass
    : PassWrapper<SinkAwaitsPass, OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SinkAwaitsPass)
  StringRef getArgument() const final { return "sink-awaits"; }
  StringRef getDescription() const final {
    return "await reductions where the next one starts";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<schedule::ScheduleDialect>();
  }
  void runOnOperation() override {
    if (failed(schedule::rewritePrograms(
            getOperation(), [](const plan::Plan &, plan::Program &program) {
              schedule::sinkAwaits(program);
            })))
      signalPassFailure();
  }
};

} // namespace

std::unique_ptr<Pass> accel::createSinkAwaitsPass() {
  return std::make_unique<SinkAwaitsPass>();
}
