//===- ReportFigures.h - What a report says of a plan -----------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_TOOLS_DRIVER_SESSION_REPORTFIGURES_H
#define ACCEL_TOOLS_DRIVER_SESSION_REPORTFIGURES_H

#include "tools/driver/Session/PlanReport.h"
#include "tools/driver/Session/Session.h"

#include <functional>

namespace accel {

/// "FSDP2 (2 x 4)": who shards how.
std::string strategyName(const JobConfig &job);

/// What the inputs alone say.
void describeInputs(const Session &session, PlanReport &report);
/// The parameters that axes of the mesh split, of a differentiated module.
void describeSplits(mlir::ModuleOp module, PlanReport &report);
/// Figures of accel-run's program, and whether it fits.
void useProgramFigures(const Session &session, const plan::Plan &plan,
                       PlanReport &report);
/// Figures of the configuration under its framework, as `advice` has them. Of
/// accel-run only what its program does not tell.
void useFrameworkFigures(const Session &session, const plan::Plan &plan,
                         const Advice &advice, PlanReport &report);
/// How sure the figures are, and whether that is enough.
void addErrorBars(const Session &session, PlanReport &report);
/// What the job holds outside its steps. `stepOf` is PhaseInputs's.
void reportPhases(
    const Session &session, const Advice &advice,
    std::function<std::shared_ptr<const DecidedStep>(int64_t)> stepOf,
    PlanReport &report);

} // namespace accel

#endif // ACCEL_TOOLS_DRIVER_SESSION_REPORTFIGURES_H
