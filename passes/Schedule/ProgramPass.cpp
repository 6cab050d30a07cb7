//===- ProgramPass.cpp - Passes over programs as plain structs ------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Schedule/ProgramPass.h"

#include "dialects/Schedule/Convert.h"
#include "dialects/Sharding/Sharding.h"
#include "passes/Export/BuildSkeleton.h"
#include "passes/Schedule/LowerPrograms.h"
#include "runtime/plan/Timeline.h"

using namespace mlir;

namespace accel::schedule {

LogicalResult printPrograms(mlir::ModuleOp module, plan::Plan &plan) {
  plan::predictMemory(plan); // programs carry their peaks
  for (const plan::Program &program : plan.programs)
    if (!importProgram(module, plan, program))
      return failure();
  return success();
}

LogicalResult readPrograms(mlir::ModuleOp module, plan::Plan &plan) {
  if (failed(buildSkeleton(module, plan)))
    return failure();
  FunctionTable functions(module, plan);
  for (auto op : module.getOps<ProgramOp>()) {
    // exportProgram looks at the functions, so all must be there before.
    bool known = true;
    op.walk([&](CallOp call) {
      known &= functions.getByName(call.getCallee().str()) >= 0;
    });
    if (!known)
      return failure();
    FailureOr<plan::Program> program =
        exportProgram(op, plan, [&](StringRef name) {
          return functions.getByName(name.str());
        });
    if (failed(program))
      return failure();
    int index = static_cast<int>(plan.programs.size());
    int64_t slots = plan.job.accumulation;
    if (program->name == "eval")
      plan.eval = index;
    else
      plan.step.emplace_back(index, program->name == "middle" ? slots - 2 : 1);
    plan.programs.push_back(std::move(*program));
  }
  if (plan.step.empty())
    return module.emitError("the module has no schedule.program to train with");
  return success();
}

} // namespace accel::schedule
