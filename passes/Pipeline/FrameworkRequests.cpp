//===- FrameworkRequests.cpp - Subjects of one framework ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/Pipeline/Requests.h"
#include "runtime/plan/DiskLayout.h"

using namespace mlir;

namespace accel {
namespace {

class FrameworkRequests : RequestWriter {
public:
  explicit FrameworkRequests(const RequestWriter &writer)
      : RequestWriter(writer) {}

  /// What the file and the script say of the framework's own subjects.
  void requestFramework() {
    requestOffload();
    if (framework.kind() == FrameworkKind::AccelRun) {
      if (!options.ddp.commHook.empty())
        request("ddp",
                {b.getNamedAttr("hook", b.getStringAttr(options.ddp.commHook))},
                whoAsksDdp());
      return;
    }
    const DeepspeedSettings *zero =
        framework.kind() == FrameworkKind::Deepspeed && accelerate.deepspeed
            ? &*accelerate.deepspeed
            : nullptr;
    SmallVector<NamedAttribute> step;
    const bool clips = job.optimizer.maxGradNorm.value > 0 ||
                       (zero && zero->gradientClipping.value.value_or(0) > 0);
    flag(step, "clip", clips);
    // DeepSpeed makes the optimizer that its file names.
    const bool ofFile = zero && *zero->ownOptimizer;
    const bool torchs = ofFile && *zero->torchAdam;
    std::optional<OptimizerKernel> kernel = options.optimizerKernel;
    if (!kernel && ofFile)
      kernel = torchs ? OptimizerKernel::Foreach : OptimizerKernel::Fused;
    if (!kernel)
      kernel = job.optimizer.kernel;
    if (kernel)
      step.push_back(b.getNamedAttr(
          "kernel",
          b.getStringAttr(*kernel == OptimizerKernel::Fused     ? "fused"
                          : *kernel == OptimizerKernel::Foreach ? "foreach"
                                                                : "for_loop")));
    if (job.optimizer.stateDtype)
      step.push_back(b.getNamedAttr(
          "state", TypeAttr::get(floatType(*job.optimizer.stateDtype))));
    flag(step, "one_by_one", job.optimizer.habits.oneByOne);
    flag(step, "paged", job.optimizer.habits.paged);
    flag(step, "wide_embeddings", job.optimizer.habits.wideEmbeddings);
    if (!step.empty())
      request("optimizer", step,
              job.optimizer.maxGradNorm.value > 0
                  ? because(job.optimizer.maxGradNorm, "gradients are clipped")
              : clips ? because(zero->gradientClipping, "gradients are clipped")
              : torchs ? because(zero->torchAdam, "torch.optim.AdamW")
              : ofFile ? because(zero->ownOptimizer, "DeepSpeed's FusedAdam")
                       : plain("the script's optimizer"));
    if (zero)
      requestZero(*zero);
    if (framework.kind() == FrameworkKind::Megatron && accelerate.megatron)
      requestMegatron(*accelerate.megatron);
    if (framework.kind() == FrameworkKind::Ddp) {
      SmallVector<NamedAttribute> value;
      const bool found = options.chosen && options.chosen->bucketBytes;
      number(value, "bucket",
             found ? options.chosen->bucketBytes : options.ddp.bucketBytes);
      flag(value, "as_view", options.ddp.gradientAsBucketView);
      if (!options.ddp.commHook.empty())
        value.push_back(
            b.getNamedAttr("hook", b.getStringAttr(options.ddp.commHook)));
      if (!value.empty())
        request("ddp", value,
                found ? plain(options.chosen->why) : whoAsksDdp());
    }
  }

private:
  /// The job file, or the command line.
  sharding::BecauseAttr whoAsksDdp() {
    const DdpConfig &ddp = job.ddp;
    return ddp.commHook.written()      ? because(ddp.commHook, "")
           : ddp.bucketBytes.written() ? because(ddp.bucketBytes, "")
           : ddp.gradientAsBucketView.written()
               ? because(ddp.gradientAsBucketView, "")
               : plain("--ddp-kwargs");
  }

  /// Where nobody says so there are as many buffers as work beside an update.
  sharding::DiskAttr disk() {
    const DiskConfig &asked = job.disk;
    const plan::Disk usual;
    auto orUsual = [](const Setting<int64_t> &number, int64_t other) {
      return *number > 0 ? *number : other;
    };
    return sharding::DiskAttr::get(
        b.getContext(), b.getStringAttr(*asked.folder),
        asked.buffers.value.value_or(
            plan::leastBuffers(*asked.readAhead, *asked.writeBehind)),
        *asked.readAhead, *asked.writeBehind,
        orUsual(asked.blockBytes, usual.blockBytes),
        orUsual(asked.queueDepth, usual.queueDepth),
        orUsual(asked.threads, usual.threads));
  }

  void requestOffload() {
    SmallVector<NamedAttribute> value;
    sharding::BecauseAttr why;
    auto ask = [&](StringRef name, bool set, sharding::BecauseAttr because) {
      flag(value, name, set);
      if (set && !why)
        why = because;
    };
    const bool fsdp = framework.kind() == FrameworkKind::Fsdp1 ||
                      framework.kind() == FrameworkKind::Fsdp2 ||
                      framework.kind() == FrameworkKind::AccelRun;
    if (fsdp) {
      auto because_ = because(accelerate.offloadParams, "CPU offload");
      ask("parameters", accelerate.offloadParams.value, because_);
      ask("optimizer", accelerate.offloadParams.value, because_);
      ask("optimizer", job.offloadStates.value,
          because(job.offloadStates, "offload"));
      if (framework.kind() == FrameworkKind::AccelRun &&
          !job.disk.folder.value.empty())
        value.push_back(b.getNamedAttr("disk", disk()));
      ask("activations",
          framework.kind() == FrameworkKind::AccelRun &&
              job.offloadActivations.value,
          because(job.offloadActivations, "offload"));
    }
    if (framework.kind() == FrameworkKind::Deepspeed && accelerate.deepspeed) {
      // What goes to an NVMe disk leaves the device as what goes to the host.
      const DeepspeedSettings &zero = *accelerate.deepspeed;
      ask("parameters",
          *zero.zeroStage == 3 &&
              *zero.offloadParameters != OffloadDevice::None,
          because(zero.offloadParameters, "offload_param"));
      ask("optimizer",
          *zero.zeroStage > 0 && *zero.offloadOptimizer != OffloadDevice::None,
          because(zero.offloadOptimizer, "offload_optimizer"));
    }
    if (framework.kind() == FrameworkKind::Megatron && accelerate.megatron)
      ask("optimizer", *accelerate.megatron->optimizerCpuOffload,
          because(accelerate.megatron->optimizerCpuOffload,
                  "optimizer_cpu_offload"));
    ask("activations", accelerate.activationCheckpointingOffload.value,
        because(accelerate.activationCheckpointingOffload,
                "activation offload"));
    if (const auto &offloads = job.script.offloadsCheckpoints; *offloads)
      ask("activations", true, because(offloads, "offload: true"));
    if (const auto &chosen = options.chosen;
        chosen && (chosen->offloadParameters || chosen->offloadOptimizer ||
                   chosen->offloadLayerInputs)) {
      value.clear();
      why = plain(chosen->why);
      flag(value, "parameters", chosen->offloadParameters.value_or(false));
      flag(value, "optimizer", chosen->offloadOptimizer.value_or(false));
      flag(value, "activations", chosen->offloadLayerInputs.value_or(false));
    }
    if (!value.empty())
      request("offload", value, why);
  }

  void requestMegatron(const MegatronSettings &megatron) {
    SmallVector<NamedAttribute> value;
    flag(value, "distributed", *megatron.distributedOptimizer);
    flag(value, "overlap_gradients", *megatron.overlapsGradients);
    flag(value, "overlap_parameters", *megatron.overlapsParameters);
    number(value, "chunks", *megatron.chunks);
    number(value, "last_layers", *megatron.lastStageLayers);
    number(value, "experts", *megatron.expertParallel);
    number(value, "expert_tensor", *megatron.expertTensorParallel);
    flag(value, "overlap_tensor", *megatron.overlapsTensor);
    flag(value, "sends_once", *megatron.sendsOnce);
    flag(value, "overlap_experts", *megatron.overlapsExperts);
    for (const auto &[part, name] : plan::recomputeModules)
      flag(value, plan::recomputeRequest(name),
           megatron.recomputeModules->has(part));
    for (const auto &[part, name] : plan::graphedParts)
      flag(value, plan::graphRequest(name), megatron.graphs->has(part));
    flag(value, "expert_biases", *megatron.expertBiases);
    flag(value, "fused_experts", *megatron.fusedExperts);
    flag(value, "shards_parameters", *megatron.shardsParameters);
    if (*megatron.offloadedLayers > 0)
      number(value, "offloaded_layers", *megatron.offloadedLayers);
    request(
        "megatron", value,
        because(megatron.distributedOptimizer, "use_distributed_optimizer"));
  }

  /// "auto" that nobody resolved is left at DeepSpeed's defaults.
  void requestZero(const DeepspeedSettings &zero) {
    SmallVector<NamedAttribute> value;
    number(value, "stage", *zero.zeroStage);
    if (zero.fileRead) {
      number(value, "reduce_bucket", zero.reduceBucket.value);
      number(value, "prefetch_bucket", zero.prefetchBucket.value);
      number(value, "persistence_threshold", zero.persistenceThreshold.value);
      flag(value, "overlap", *zero.overlapCommunication);
      if (zero.subGroup.written())
        number(value, "sub_group", *zero.subGroup);
      requestZeroPlus(zero);
    }
    if (options.chosen && options.chosen->zeroStage) {
      value[0] = b.getNamedAttr(
          "stage", b.getI64IntegerAttr(*options.chosen->zeroStage));
      return request("zero", value, plain(options.chosen->why));
    }
    request("zero", value, because(zero.zeroStage, "zero_stage"));
  }

  /// ZeRO++ and MiCS; their groups of ranks are axes of the mesh.
  void requestZeroPlus(const DeepspeedSettings &zero) {
    SmallVector<NamedAttribute> value;
    sharding::BecauseAttr why;
    auto ask = [&](bool set, const auto &setting) {
      if (set && !why)
        why = because(setting, "");
    };
    const bool grouped = *zero.secondaryRanks > 1, mics = *zero.micsRanks > 0;
    if (grouped)
      number(value, "secondary", *zero.secondaryRanks);
    if (mics)
      number(value, "shard", *zero.micsRanks);
    flag(value, "weights", *zero.quantizedWeights);
    flag(value, "gradients", *zero.quantizedGradients);
    ask(grouped, zero.secondaryRanks);
    ask(mics, zero.micsRanks);
    ask(*zero.quantizedWeights, zero.quantizedWeights);
    ask(*zero.quantizedGradients, zero.quantizedGradients);
    if (why)
      request("zero_plus", value, why);
  }
};

} // namespace

void requestFramework(const RequestWriter &writer) {
  FrameworkRequests(writer).requestFramework();
}

} // namespace accel
