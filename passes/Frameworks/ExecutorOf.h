//===- ExecutorOf.h - Who runs a configuration ------------------*- C++ -*-===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef ACCEL_PASSES_FRAMEWORKS_EXECUTOROF_H
#define ACCEL_PASSES_FRAMEWORKS_EXECUTOROF_H

#include "frontends/Job/JobConfig.h"
#include "passes/Frameworks/Framework.h"

namespace accel {

/// The framework that Accelerate would use for the configuration, of a job.yaml
/// for its accelerate section; accel-run where Accelerate has none.
FrameworkKind launchedBy(const JobConfig &job);

/// Who runs the configuration: accel-run a job.yaml, else launchedBy.
FrameworkKind executorOf(const JobConfig &job);

} // namespace accel

#endif // ACCEL_PASSES_FRAMEWORKS_EXECUTOROF_H
