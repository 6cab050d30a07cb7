//===- AccelRunPrediction.h - Figures of accel-run --------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_SESSION_ACCELRUNPREDICTION_H
#define ACCEL_TOOLS_DRIVER_SESSION_ACCELRUNPREDICTION_H

#include "frontends/Diagnostics/Diagnostics.h"
#include "passes/FrameworkSteps/StepEvaluator.h"
#include "passes/Segments/Segments.h"
#include "runtime/plan/Plan.h"

#include "mlir/IR/BuiltinOps.h"

namespace accel {

/// The plan of a module of phase `scheduled`, with what a rank holds; with a
/// target also what its device holds, and how long a step takes. Segments of
/// CUDA devices are replayed by the allocator's rules, those of others are the
/// target's share.
mlir::LogicalResult buildPredictedPlan(mlir::ModuleOp module,
                                       const Target *target,
                                       int64_t ranksPerNode,
                                       const RankAllocator &allocator,
                                       plan::Plan &plan);

/// Reports what is wrong with a plan that we made. False if there is anything.
bool checkPlan(const plan::Plan &plan, const std::string &file,
               DiagnosticEngine &engine);

/// `plan.predicted` as a StepPrediction; with a target, what is waited for by
/// cause. The seconds of recomputation are not told apart.
StepPrediction accelRunPrediction(const plan::Plan &plan, const Target *target,
                                  int64_t ranksPerNode);

/// Of `all` seconds that a step of `model` recomputes on ranks that have all of
/// it, those of the plan's: of a pipeline those of the stage whose computation
/// `accelRunPrediction` counts.
double recomputeSecondsOf(const plan::Plan &plan, const StepModel &model,
                          const Candidate &candidate, double all);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_SESSION_ACCELRUNPREDICTION_H
