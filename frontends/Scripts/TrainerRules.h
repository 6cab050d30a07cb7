//===- TrainerRules.h - What Trainer checks of a whole job ------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_FRONTENDS_SCRIPTS_TRAINERRULES_H
#define ACCEL_FRONTENDS_SCRIPTS_TRAINERRULES_H

#include "frontends/Job/JobConfig.h"
#include "frontends/Scripts/ScriptArguments.h"

namespace accel::scripts {

/// What Trainer checks when Accelerate's plugins are built, and what a script
/// and the accelerate file do to each other. A default stands in no file, and
/// is reported of `file`.
void checkTrainerRules(const JobConfig &job, const Recipe &recipe,
                       bool hasScript, const std::string &file,
                       const LoadOptions &options, DiagnosticEngine &engine);

} // namespace accel::scripts

#endif // ACCEL_FRONTENDS_SCRIPTS_TRAINERRULES_H
