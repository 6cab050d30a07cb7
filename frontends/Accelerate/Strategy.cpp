//===- Strategy.cpp - What follows from a file ----------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/Accelerate/Reader.h"
#include "runtime/plan/Stages.h"

#include <algorithm>

using namespace accel;

void AccelerateReader::deriveStrategy() {
  Strategy strategy = Strategy::Other;
  switch (*config.distributedType) {
  case DistributedType::Fsdp:
    return; // read from fsdp_version
  case DistributedType::No:
    strategy = Strategy::Single;
    break;
  case DistributedType::MultiCpu:
  case DistributedType::MultiGpu:
    strategy = oneProcess ? Strategy::Single : Strategy::Ddp;
    break;
  default:
    break;
  }
  const auto &type = config.distributedType;
  config.strategy = {strategy, Origin::Derived, type.key, type.at,
                     std::string("follows from ") + toString(*type)};
  defaultsWithoutFsdp();
}

void AccelerateReader::defaultsWithoutFsdp() {
  const auto &type = config.distributedType;
  std::string why = std::string("follows from ") + toString(*type);
  auto derived = [&](auto &setting, auto value) {
    setting = {value, Origin::Derived, type.key, type.at, why};
  };
  derived(config.sharding, Sharding::NoShard);
  derived(config.reshardAfterForward, false);
  derived(config.wrapPolicy, WrapPolicy::None);
  derived(config.stateDictType, StateDictType::Full);
  derived(config.useOrigParams, true);
  derived(config.minNumParams, int64_t(0));
}

/// Ranks are numbered with tp innermost and stages outermost
/// (megatron/core/parallel_state.py, order "tp-cp-ep-dp-pp").
static void addMegatronAxes(const MegatronSettings &megatron,
                            plan::Mesh &mesh) {
  if (*megatron.contextParallel > 1)
    mesh.resize("cp", *megatron.contextParallel);
  if (*megatron.tensorParallel > 1)
    mesh.resize("tp", *megatron.tensorParallel);
  if (*megatron.pipelineParallel > 1)
    mesh.axes.insert(mesh.axes.begin(),
                     {plan::pipelineAxis, *megatron.pipelineParallel});
}

/// "dp_replicate 1, dp_shard 4, tp 2": data parallelism, then what is split.
static std::string meshText(const plan::Mesh &mesh) {
  std::string text = "dp_replicate " +
                     std::to_string(mesh.size("dp_replicate")) + ", dp_shard " +
                     std::to_string(mesh.size("dp_shard"));
  for (const plan::Axis &axis : mesh.axes)
    if (axis.size > 1 && !axis.name.starts_with("dp_"))
      text += ", " + axis.name + " " + std::to_string(axis.size);
  return text;
}

/// Where parallelism_config gives no sizes, they follow from the strategy and
/// the number of ranks.
void AccelerateReader::deriveMesh() {
  auto &mesh = config.mesh;
  int64_t ranks = *config.numProcesses;
  Strategy strategy = *config.strategy;
  const auto &count = config.numProcesses;
  plan::Mesh sizes = plan::Mesh::dataParallel();
  std::string why;
  if (strategy == Strategy::Single) {
    why = "one process";
  } else if (strategy == Strategy::Fsdp2 && mesh.written()) {
    remember({nullptr, "mesh"}, meshText(*mesh), "from parallelism_config",
             Origin::Derived);
    return;
  } else if (config.deepspeed && *config.deepspeed->zeroStage > 0) {
    sizes.resize("dp_shard", ranks);
    why = "ZeRO stage " + std::to_string(*config.deepspeed->zeroStage) +
          (*config.deepspeed->zeroStage == 1   ? " shards optimizer state"
           : *config.deepspeed->zeroStage == 2 ? " shards optimizer state and "
                                                 "gradients"
                                               : " shards optimizer state, "
                                                 "gradients and parameters") +
          " over all ranks";
  } else if (config.megatron) {
    int64_t model = *config.megatron->tensorParallel *
                    *config.megatron->pipelineParallel *
                    *config.megatron->contextParallel;
    sizes.resize("dp_replicate",
                 model > 0 ? std::max<int64_t>(ranks / model, 1) : ranks);
    if (options.forPlanning)
      addMegatronAxes(*config.megatron, sizes);
    why =
        "Megatron-LM: ranks / (tp_degree x pp_degree x context_parallel_size)";
  } else if (strategy == Strategy::Ddp || strategy == Strategy::Other) {
    sizes.resize("dp_replicate", ranks);
    why = "every rank holds the whole model";
  } else if (strategy == Strategy::Fsdp1 &&
             *config.sharding == Sharding::NoShard) {
    sizes.resize("dp_replicate", ranks);
    why = "NO_SHARD replicates";
  } else if (strategy == Strategy::Fsdp1 &&
             (*config.sharding == Sharding::HybridShard ||
              *config.sharding == Sharding::HybridShardZero2)) {
    sizes.resize("dp_shard", config.processesPerMachine());
    sizes.resize("dp_replicate", ranks / sizes.size("dp_shard"));
    why = std::string(toString(*config.sharding)) +
          " shards inside of a machine and replicates across machines";
  } else {
    sizes.resize("dp_shard", ranks);
    why = "FSDP shards over all ranks";
  }
  mesh = {sizes, Origin::Derived, count.key, count.at, why};
  remember({nullptr, "mesh"}, meshText(sizes), why, Origin::Derived);
}

void AccelerateReader::derivePrecision() {
  const auto &mixed = config.mixedPrecision;
  Strategy strategy = *config.strategy;
  PrecisionPolicy policy;
  std::string why = "mixed_precision is no: parameters keep their dtype";
  if (*mixed != MixedPrecision::No) {
    // fp8 computes its other operators in bf16.
    plan::DType low =
        *mixed == MixedPrecision::Fp16 ? plan::DType::F16 : plan::DType::BF16;
    policy.param = low;
    policy.lossScaling = *mixed == MixedPrecision::Fp16;
    if (strategy == Strategy::Fsdp2) {
      policy.upcast = before(1, 13)   ? Upcast::All
                      : before(1, 14) ? Upcast::None
                                      : Upcast::Trainable;
      policy.reduce = policy.output = low;
      policy.castInputs = true;
      why = "FSDP2 under Accelerate computes, reduces and returns in " +
            std::string(toString(*mixed)) +
            (before(1, 13)   ? ", and turns all parameters into fp32, frozen "
                               "ones too"
             : before(1, 14) ? "; the turn into fp32 does nothing in 1.13 (a "
                               "bug): the optimizer works on parameters as "
                               "loaded"
                             : " and keeps trainable parameters in fp32");
    } else if (strategy == Strategy::Fsdp1) {
      policy.upcast = before(0, 30) ? Upcast::None : Upcast::TrainableUnits;
      policy.reduce = low;
      policy.output = plan::DType::F32;
      policy.autocast = true;
      why = "FSDP1 under Accelerate computes and reduces in " +
            std::string(toString(*mixed)) + ", returns fp32" +
            (before(0, 30) ? ", and leaves parameters in the dtype they were "
                             "loaded in (before 0.30)"
                           : ", and keeps trainable parameters in fp32");
    } else if (config.megatron) {
      policy.output = low;
      why = "Megatron-LM's weights are " + std::string(toString(*mixed)) +
            ", and its optimizer has fp32 copies";
    } else {
      policy.output = plan::DType::F32;
      policy.autocast = true;
      why = "autocast computes in " + std::string(toString(*mixed)) +
            "; parameters and gradients keep their dtype";
    }
  }
  if (config.deepspeed) {
    const DeepspeedSettings &d = *config.deepspeed;
    policy = {};
    why = "DeepSpeed without fp16 or bf16 keeps parameters as loaded";
    if (*d.fp16 || *d.bf16) {
      plan::DType low = *d.fp16 ? plan::DType::F16 : plan::DType::BF16;
      policy.param = policy.reduce = policy.output = low;
      policy.castInputs = true;
      policy.lossScaling = *d.fp16;
      why = std::string("DeepSpeed turns the model into ") +
            (*d.fp16 ? "fp16" : "bf16") +
            ", and its optimizer keeps a sharded fp32 copy";
    }
  }
  config.precision = {policy, Origin::Derived, mixed.key, mixed.at, why};
  auto name = [](const std::optional<plan::DType> &dtype) {
    return dtype ? std::string(plan::toString(*dtype)) : "as stored";
  };
  remember({nullptr, "precision"},
           "compute " + name(policy.param) + ", reduce " + name(policy.reduce) +
               ", output " + name(policy.output) +
               ", to fp32: " + toString(policy.upcast),
           why, Origin::Derived);
}

/// Why a type of job has no prediction.
static std::string whyNotPlanned(DistributedType type) {
  const std::string name =
      "distributed_type " + std::string(toString(type)) + " ";
  switch (type) {
  case DistributedType::MultiNpu:
  case DistributedType::MultiMlu:
  case DistributedType::MultiSdaa:
  case DistributedType::MultiMusa:
  case DistributedType::MultiXpu:
  case DistributedType::MultiHpu:
  case DistributedType::MultiNeuron:
  case DistributedType::Xla:
    return name + "runs on devices of which no target is described, so that it "
                  "is not supported yet";
  case DistributedType::MegatronLm:
    return name + "trains Megatron-LM's own model, which `accel-opt plan` "
                  "predicts and accel-run does not execute";
  default:
    return name + "is not supported yet";
  }
}

/// Everything that is valid for Accelerate and that accel-opt cannot plan yet,
/// in one place (mesh axes are named where they are read).
void AccelerateReader::checkSupport() {
  if (unrecoverable)
    return;
  DistributedType type = *config.distributedType;
  constexpr AccelerateVersion oldestPlanned{1, 0};
  if (options.forPlanning && version < oldestPlanned)
    engine.error(notSupportedCode, file,
                 "planning as accelerate " + toString(version) +
                     " is not supported: what its plugins do in a step is "
                     "known from " +
                     toString(oldestPlanned) + " to " +
                     toString(newestAccelerate),
                 "`accel-opt lint` knows " + toString(oldestAccelerate) +
                     " to " + toString(newestAccelerate));
  // What Accelerate's own executor may be predicted for is the planner's to
  // refuse, where accel-run is to execute it.
  bool planned = options.forPlanning;
  if (*config.strategy == Strategy::Other &&
      !(planned && (type == DistributedType::Deepspeed ||
                    type == DistributedType::MegatronLm)))
    notSupported(top("distributed_type"), whyNotPlanned(type),
                 "planned are NO, MULTI_CPU, MULTI_GPU, FSDP, DEEPSPEED and "
                 "MEGATRON_LM");
  const Field backend = in(section("fp8_config"), "fp8_backend");
  if (*config.mixedPrecision == MixedPrecision::Fp8 && backend &&
      equalsUpper(yaml::pythonText(backend.value()), "MSAMP"))
    notSupported(top("mixed_precision"),
                 "mixed_precision fp8 by MS-AMP keeps gradients and optimizer "
                 "states in 8 bits, which is not modelled",
                 "write backend: AO or TE");
  if (*config.offloadParams && !planned)
    notSupported(in(fsdp, "fsdp_offload_params"),
                 "fsdp_offload_params is not supported yet: plans keep "
                 "parameters on the device");
  if (*config.activationCheckpointingOffload && !planned)
    notSupported(in(fsdp, "fsdp_activation_checkpointing_offload"),
                 "fsdp_activation_checkpointing_offload is not supported yet");
}
