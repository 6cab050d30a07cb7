//===- ExecutorOf.cpp - Who runs a configuration -------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Frameworks/ExecutorOf.h"

namespace accel {

ExecutorKind executorOf(const JobConfig &job) {
  if (job.isJob)
    return ExecutorKind::AccelRun;
  switch (job.accelerate.strategy.value) {
  case Strategy::Single:
    return ExecutorKind::Single;
  case Strategy::Ddp:
    return ExecutorKind::Ddp;
  case Strategy::Fsdp1:
    return ExecutorKind::Fsdp1;
  case Strategy::Fsdp2:
    return ExecutorKind::Fsdp2;
  case Strategy::Other:
    break;
  }
  return job.accelerate.distributedType.value == DistributedType::Deepspeed
             ? ExecutorKind::Deepspeed
             : ExecutorKind::AccelRun;
}

} // namespace accel
