//===- AssignMemoryPass.cpp - assign-memory -------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Memory/AssignMemoryPass.h"

#include "dialects/Aten/Aten.h"
#include "dialects/Schedule/Schedule.h"
#include "dialects/Sharding/Sharding.h"
#include "passes/Memory/AssignMemory.h"
#include "passes/Schedule/ProgramPass.h"

#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace accel;

namespace {

struct AssignMemoryPass
    : PassWrapper<AssignMemoryPass, OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(AssignMemoryPass)
  StringRef getArgument() const final { return "assign-memory"; }
  StringRef getDescription() const final {
    return "free every value at its last use";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<schedule::ScheduleDialect>();
  }
  void runOnOperation() override {
    if (failed(schedule::rewritePrograms(
            getOperation(), [](const plan::Plan &plan, plan::Program &program) {
              schedule::assignMemory(plan, program);
            })))
      signalPassFailure();
  }
};

} // namespace

std::unique_ptr<Pass> accel::createAssignMemoryPass() {
  return std::make_unique<AssignMemoryPass>();
}
