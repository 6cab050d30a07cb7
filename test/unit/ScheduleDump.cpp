//===- ScheduleDump.cpp - Prints programs as IR for tests -----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// schedule-dump small|accumulate|replicate: the programs of a plan as a module
// of the schedule dialect. Read by test/Dialect/Schedule.
//
//===----------------------------------------------------------------------===//
#include "dialects/Schedule/Convert.h"
#include "test/unit/ImportProgram.h"
#include "test/unit/PlanFixture.h"

#include "llvm/Support/raw_ostream.h"

using namespace accel;

int main(int argc, char **argv) {
  llvm::StringRef which = argc == 2 ? argv[1] : "";
  plan::test::Size size;
  size.layers = 1;
  if (which == "accumulate") {
    size.accumulation = 3;
  } else if (which == "replicate") {
    size.replicas = 2;
    size.allToAll = false;
  } else if (which != "small") {
    llvm::errs() << "usage: schedule-dump small|accumulate|replicate\n";
    return 64;
  }
  plan::Plan plan = plan::test::makePlan(size);
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<schedule::ScheduleDialect>();
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  for (const plan::Program &program : plan.programs)
    if (!schedule::importProgram(*module, plan, program))
      return 1;
  mlir::OpPrintingFlags flags;
  flags.enableDebugInfo(true, false);
  module->print(llvm::outs(), flags);
  llvm::outs() << '\n';
  return 0;
}
