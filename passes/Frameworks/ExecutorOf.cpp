//===- ExecutorOf.cpp - Who runs a configuration --------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Frameworks/ExecutorOf.h"

namespace accel {

FrameworkKind executorOf(const JobConfig &job) {
  if (job.isJob)
    return FrameworkKind::AccelRun;
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
  switch (job.accelerate.distributedType.value) {
  case DistributedType::Deepspeed:
    return FrameworkKind::Deepspeed;
  case DistributedType::MegatronLm:
    return FrameworkKind::Megatron;
  default:
    return FrameworkKind::AccelRun;
  }
}

} // namespace accel
