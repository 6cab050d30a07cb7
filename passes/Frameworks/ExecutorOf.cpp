//===- ExecutorOf.cpp - Who runs a configuration --------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Frameworks/ExecutorOf.h"

namespace accel {

FrameworkKind launchedBy(const JobConfig &job) {
  // Of these the strategy is derived, for accel-run.
  switch (job.accelerate.distributedType.value) {
  case DistributedType::Deepspeed:
    return FrameworkKind::Deepspeed;
  case DistributedType::MegatronLm:
    return FrameworkKind::Megatron;
  default:
    break;
  }
  switch (job.accelerate.strategy.value) {
  case Strategy::Single:
    return FrameworkKind::Single;
  case Strategy::Ddp:
    return FrameworkKind::Ddp;
  case Strategy::Fsdp1:
    return FrameworkKind::Fsdp1;
  case Strategy::Fsdp2:
    return FrameworkKind::Fsdp2;
  case Strategy::Other:
    break;
  }
  return FrameworkKind::AccelRun;
}

FrameworkKind executorOf(const JobConfig &job) {
  return job.isJob ? FrameworkKind::AccelRun : launchedBy(job);
}

} // namespace accel
