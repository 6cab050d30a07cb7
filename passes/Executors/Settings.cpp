//===- Settings.cpp - A configuration as executor settings ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Executors/Settings.h"

#include <algorithm>

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

namespace {

/// What the section or the JSON file says of ZeRO. "auto" follows the script
/// and is left at DeepSpeed's defaults. What goes to an NVMe disk leaves the
/// device as what goes to the host.
void readZero(const DeepspeedSettings &zero, ExecutorSettings &settings) {
  settings.zeroStage = static_cast<int>(*zero.zeroStage);
  settings.offloadOptimizer =
      settings.zeroStage > 0 && *zero.offloadOptimizer != OffloadDevice::None;
  settings.offloadParameters =
      settings.zeroStage == 3 && *zero.offloadParameters != OffloadDevice::None;
  auto count = [](const Setting<std::optional<int64_t>> &from, int64_t &to) {
    to = from.value.value_or(to);
  };
  if (!zero.fileRead)
    return;
  count(zero.reduceBucket, settings.zero.reduceBucket);
  count(zero.prefetchBucket, settings.zero.prefetchBucket);
  count(zero.persistenceThreshold, settings.zero.persistenceThreshold);
  settings.zero.overlap = *zero.overlapCommunication;
}

} // namespace

ExecutorSettings settingsOf(const JobConfig &job, ExecutorKind executor,
                            plan::DType loaded) {
  const AccelerateConfig &accelerate = job.accelerate;
  const PrecisionPolicy &policy = job.precision.value;
  ExecutorSettings settings;
  settings.executor = executor;
  settings.shardRanks = accelerate.mesh->dpShard;
  settings.replicateRanks = accelerate.mesh->dpReplicate;
  if (executor == ExecutorKind::Deepspeed) { // ZeRO partitions over all ranks
    settings.shardRanks *= settings.replicateRanks;
    settings.replicateRanks = 1;
  }
  if (executor == ExecutorKind::Ddp || executor == ExecutorKind::Single) {
    settings.replicateRanks *= settings.shardRanks;
    settings.shardRanks = 1;
  }
  settings.ranksPerNode =
      std::max<int64_t>(accelerate.processesPerMachine(), 1);
  settings.loaded = loaded;
  settings.upcast = policy.upcast != Upcast::None;
  settings.upcastFrozen = policy.upcast == Upcast::All;
  settings.param = policy.param;
  settings.reduce = policy.reduce;
  settings.output = policy.output;
  // accel-run computes with cast parameters where Accelerate autocasts.
  settings.autocast = policy.autocast && executor != ExecutorKind::AccelRun;
  if (policy.autocast && !settings.autocast && !settings.param)
    settings.param = accelerate.mixedPrecision.value == MixedPrecision::Fp16
                         ? plan::DType::F16
                         : plan::DType::BF16;
  if (executor == ExecutorKind::Deepspeed && !settings.param &&
      accelerate.mixedPrecision.value != MixedPrecision::No)
    settings.param = accelerate.mixedPrecision.value == MixedPrecision::Fp16
                         ? plan::DType::F16
                         : plan::DType::BF16;
  settings.checkpointLayers =
      job.activationCheckpointing.value == Checkpointing::Full;
  settings.checkpointDefault =
      job.activationCheckpointing.value != Checkpointing::None;
  settings.offloadLayerInputs = accelerate.activationCheckpointingOffload.value;
  settings.offloadParameters = accelerate.offloadParams.value;
  settings.offloadOptimizer = accelerate.offloadParams.value;
  if (executor == ExecutorKind::Deepspeed && accelerate.deepspeed)
    readZero(*accelerate.deepspeed, settings);
  settings.accumulation = job.accumulation.value;
  if (executor == ExecutorKind::Fsdp1) {
    settings.forwardPrefetch = accelerate.forwardPrefetch.value ? 1 : 0;
    settings.backwardPrefetch =
        accelerate.backwardPrefetch.value == BackwardPrefetch::None ? 0 : 1;
  }
  // `accumulate()` enters no_sync but for the last micro-batch.
  settings.reduceEachMicroBatch = executor == ExecutorKind::AccelRun;
  settings.clipGradients = job.optimizer.maxGradNorm.value > 0;
  if (executor == ExecutorKind::Deepspeed && accelerate.deepspeed)
    settings.clipGradients |=
        accelerate.deepspeed->gradientClipping.value.value_or(0) > 0;
  if (executor == ExecutorKind::AccelRun)
    settings.optimizer = OptimizerKernel::Fused;
  settings.accelerateVersion = accelerate.version;
  if (!accelerate.torchVersion.empty())
    settings.torchVersion = accelerate.torchVersion;
  return settings;
}

} // namespace accel
