//===- Settings.h - A configuration as executor settings --------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_EXECUTORS_SETTINGS_H
#define ACCEL_PASSES_EXECUTORS_SETTINGS_H

#include "frontends/Job/JobConfig.h"
#include "passes/Executors/Executor.h"

namespace accel {

/// The executor that Accelerate would use for the configuration; accel-run for
/// a job.yaml.
ExecutorKind executorOf(const JobConfig &job);

/// What `job` says for `executor`; `loaded` is the dtype of the checkpoint.
ExecutorSettings settingsOf(const JobConfig &job, ExecutorKind executor,
                            plan::DType loaded);

} // namespace accel

#endif // ACCEL_PASSES_EXECUTORS_SETTINGS_H
