//===- StageMemory.h - What calls take of their stage's memory --*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A stage holds shards of what its calls read, and for each micro-batch in
// flight what they save; beside that the largest of them computes. What is
// estimated here decides where a model is cut; what a stage takes is counted
// when its programs are there.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_SCHEDULE_STAGEMEMORY_H
#define ACCEL_PASSES_SCHEDULE_STAGEMEMORY_H

#include "dialects/Sharding/Sharding.h"
#include "passes/PipelineSchedules/Stages.h"
#include "passes/Targets/Target.h"

namespace accel::schedule {

/// Fills the bytes of `problem`'s calls, which are `calls`, and what each of
/// its stages may hold of `budget` bytes of a device. Fails after an error of
/// the module's decisions.
mlir::LogicalResult limitStages(mlir::ModuleOp module,
                                llvm::ArrayRef<sharding::CallOp> calls,
                                const Target &target, int64_t budget,
                                llvm::StringRef schedule,
                                pipeline::StageProblem &problem);

} // namespace accel::schedule

#endif // ACCEL_PASSES_SCHEDULE_STAGEMEMORY_H
