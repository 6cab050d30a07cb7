//===- LowerToSchedule.cpp - lower-to-schedule -*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Schedule/LowerToSchedule.h"

#include "dialects/Aten/Aten.h"
#include "dialects/Schedule/Schedule.h"
#include "dialects/Sharding/Sharding.h"
#include "passes/Schedule/LowerPrograms.h"
#include "passes/Schedule/ProgramPass.h"

#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace accel;

namespace {

struct LowerToSchedulePass
    : PassWrapper<LowerToSchedulePass, OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerToSchedulePass)
  StringRef getArgument() const final { return "lower-to-schedule"; }
  StringRef getDescription() const final {
    return "turn units and segments into programs with buffers and collectives";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<schedule::ScheduleDialect>();
  }
  void runOnOperation() override {
    plan::Plan plan;
    if (failed(schedule::lowerPrograms(getOperation(), plan)) ||
        failed(schedule::printPrograms(getOperation(), plan)))
      signalPassFailure();
  }
};

} // namespace

std::unique_ptr<Pass> accel::createLowerToSchedulePass() {
  return std::make_unique<LowerToSchedulePass>();
}
