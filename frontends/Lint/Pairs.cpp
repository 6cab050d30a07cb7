//===- Pairs.cpp - Rules that hold for releases together ------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What goes wrong between accelerate, transformers and torch of certain
// releases, as data: when, where, what, and the source that says so. Each code
// has a section in docs/diagnostics.md and a case in test/Lint/pairs.test.
//
//===----------------------------------------------------------------------===//

#include "frontends/Lint/RegionsUnsharded.h"
#include "frontends/Lint/Subject.h"

#include <algorithm>

namespace accel::lint {

namespace {

/// Releases from `since` to before `until`.
struct Releases {
  AccelerateVersion since{0, 0}, until = neverAccelerate;
  bool has(AccelerateVersion v) const { return since <= v && v < until; }
};

struct PairRule {
  const char *code;
  Severity severity;
  Releases accelerate, transformers;
  bool (*applies)(const Subject &);
  Field (*place)(const Subject &);
  const char *message, *hint;
  const char *source; // a thread or a line of a release
};

Field meshPlace(const Subject &s, const char *axis) {
  return s.in("parallelism_config",
              std::string("parallelism_config_") + axis + "_size");
}
Field contextSize(const Subject &s) { return meshPlace(s, "cp"); }
Field tensorSize(const Subject &s) { return meshPlace(s, "tp"); }
Field fsdpKey(const Subject &s, const char *name) {
  return s.in("fsdp_config", name);
}
Field ignoredKey(const Subject &s) {
  return fsdpKey(s, "fsdp_ignored_modules");
}
Field loadingKey(const Subject &s) {
  return fsdpKey(s, "fsdp_cpu_ram_efficient_loading");
}
Field classesKey(const Subject &s) {
  return fsdpKey(s, "fsdp_transformer_layer_cls_to_wrap");
}
Field versionKey(const Subject &s) { return fsdpKey(s, "fsdp_version"); }
Field offloadKey(const Subject &s) { return fsdpKey(s, "fsdp_offload_params"); }
Field stateKey(const Subject &s) { return fsdpKey(s, "fsdp_state_dict_type"); }

bool hasContext(const Subject &s) { return s.meshSize("cp") > 1; }
bool skipsContext(const Subject &s) {
  return skipsContextParallelism(s.version) && hasContext(s);
}
bool isSplit(const Subject &s) { return s.isFsdp2() && s.meshSize("tp") > 1; }
bool isReplicatedSplit(const Subject &s) {
  return !s.isFsdp() && s.config && s.meshSize("tp") > 1;
}
bool hooksNothing(const Subject &s) {
  return hasContext(s) && s.tree &&
         std::none_of(
             s.tree->modules.begin(), s.tree->modules.end(),
             [](const TreeModule &m) { return m.fqn.ends_with("self_attn"); });
}
bool ignoresModules(const Subject &s) {
  return s.isFsdp2() && !s.config->ignoredModules->empty() &&
         s.torch >= AccelerateVersion{2, 7} &&
         (*s.config->numProcesses > 1 || s.config->assumed.numProcesses);
}
bool loadsExperts(const Subject &s) {
  return s.isFsdp2() && loadingKey(s) && *s.config->cpuRamEfficientLoading &&
         s.tree &&
         std::any_of(s.tree->modules.begin(), s.tree->modules.end(),
                     [](const TreeModule &m) {
                       return m.className.ends_with("Experts");
                     });
}
/// One expert alone, which a rank without a token for it does not call.
bool wrapsExperts(const Subject &s) {
  if (!s.isFsdp() || !s.config->wrapClasses->has_value())
    return false;
  constexpr const char *experts[] = {"MixtralBlockSparseTop2MLP",
                                     "MixtralBLockSparseTop2MLP",
                                     "Qwen2MoeMLP",
                                     "Qwen3MoeMLP",
                                     "OlmoeMLP",
                                     "DeepseekV2MLP",
                                     "DeepseekV3MLP",
                                     "PhimoeBlockSparseTop2MLP",
                                     "JambaMLP"};
  return std::any_of((*s.config->wrapClasses)->begin(),
                     (*s.config->wrapClasses)->end(),
                     [&](const std::string &name) {
                       return std::find(std::begin(experts), std::end(experts),
                                        name) != std::end(experts);
                     });
}
bool isDeepspeed(const Subject &s) {
  return s.isType(DistributedType::Deepspeed) && s.config->deepspeed &&
         !s.config->assumed.deepspeed;
}
Field stageKey(const Subject &s) {
  const Field stage = s.in("deepspeed_config", "zero_stage");
  return stage ? stage : s.in("deepspeed_config", "deepspeed_config_file");
}
Field spSize(const Subject &s) { return meshPlace(s, "sp"); }
Field regionalKey(const Subject &s) {
  return s.in("dynamo_config", "dynamo_use_regional_compilation");
}
Field checkpointKey(const Subject &s) {
  return fsdpKey(s, "fsdp_activation_checkpointing");
}

bool hasTensor(const Subject &s) { return s.config && s.meshSize("tp") > 1; }
bool hasSequence(const Subject &s) {
  return isDeepspeed(s) && s.meshSize("sp") > 1;
}
bool offloads2(const Subject &s) {
  return s.isFsdp2() && *s.config->offloadParams;
}
bool isQuantized(const Subject &s) {
  return s.tree && s.tree->quantization.starts_with("bitsandb");
}
bool loadsQuantized2(const Subject &s) {
  return s.isFsdp2() && isQuantized(s) && *s.config->cpuRamEfficientLoading;
}
bool accumulates2(const Subject &s) {
  return s.isFsdp2() && s.job && s.job->accumulation.value > 1;
}
bool partitionsGradients(const Subject &s) {
  return isDeepspeed(s) && *s.config->deepspeed->zeroStage >= 2 &&
         (s.config->deepspeed->gradientAccumulation->value_or(1) > 1 ||
          (s.job && s.job->accumulation.value > 1));
}
bool compilesRegions(const Subject &s) {
  return s.config && s.config->dynamo.compiles() && *s.config->dynamo.regional;
}
bool compilesRegions2(const Subject &s) {
  return s.isFsdp2() && compilesRegions(s);
}
bool checkpoints(const Subject &s) {
  return s.isFsdp() && *s.config->activationCheckpointing && s.tree &&
         std::any_of(s.tree->modules.begin(), s.tree->modules.end(),
                     [](const TreeModule &m) {
                       return m.className.ends_with("DecoderLayer");
                     });
}
/// A module per expert, as transformers had them before release 5.
/// deepspeed/runtime/zero/leaf_module_config.py of 0.18: blocks that it gathers
/// as one without being told.
bool hasLeavesByDefault(const Subject &s) {
  const auto release = parseAccelerateVersion(s.deepspeed);
  if (release && *release < AccelerateVersion{0, 18})
    return false;
  constexpr const char *blocks[] = {"MixtralSparseMoeBlock",
                                    "Qwen2MoeSparseMoeBlock",
                                    "Qwen3MoeSparseMoeBlock"};
  return std::any_of(s.tree->modules.begin(), s.tree->modules.end(),
                     [&](const TreeModule &m) {
                       return std::find(std::begin(blocks), std::end(blocks),
                                        m.className) != std::end(blocks);
                     });
}
bool gathersExperts(const Subject &s) {
  return isDeepspeed(s) && *s.config->deepspeed->zeroStage == 3 &&
         s.config->deepspeed->moeClasses->empty() && s.tree &&
         !hasLeavesByDefault(s) &&
         std::any_of(s.tree->modules.begin(), s.tree->modules.end(),
                     [](const TreeModule &m) {
                       return m.className.ends_with("SparseMoeBlock") ||
                              m.className.ends_with("Experts");
                     });
}

bool quantizedOffload(const Subject &s) {
  return s.isFsdp() && !s.isFsdp2() && isQuantized(s) &&
         *s.config->offloadParams;
}
bool shardedState2(const Subject &s) {
  return s.isFsdp2() && stateKey(s) &&
         *s.config->stateDictType == StateDictType::Sharded;
}
bool shardedState(const Subject &s) {
  return s.tree && s.isFsdp() && s.config->sharded() && stateKey(s) &&
         *s.config->stateDictType == StateDictType::Sharded;
}

const PairRule rules[] = {
    {"cp-skipped",
     Severity::Error,
     {},
     {},
     skipsContext,
     contextSize,
     "accelerate 1.12 does no context parallelism: its ranks train the same "
     "sequences whole, and nothing says so",
     "use accelerate 1.13 or later",
     "accelerate#3856, PR 3867"},
    {"cp-hooks",
     Severity::Warning,
     {{1, 10}},
     {},
     hooksNothing,
     contextSize,
     "context parallelism takes the mask out of modules named self_attn, and "
     "this model has none: attention is not causal across ranks, and nothing "
     "says so",
     "leave cp_size at 1 for this model",
     "accelerate/big_modeling.py, _attach_context_parallel_hooks"},
    {"tp-import",
     Severity::Warning,
     {{1, 13}},
     {{5, 23}},
     isSplit,
     tensorSize,
     "FSDP2 with tensor parallelism imports ReplicateParallel, which "
     "transformers 5.23 no longer has: every rank of a split model stops with "
     "an ImportError",
     "use transformers 5.22, or leave tp_size at 1",
     "accelerate/accelerator.py, _prepare_tp"},
    {"tp-import",
     Severity::Error,
     {{1, 10}, {1, 13}},
     {{5, 23}},
     isSplit,
     tensorSize,
     "FSDP2 with tensor parallelism imports ReplicateParallel, which "
     "transformers 5.23 no longer has: every rank stops, with an ImportError "
     "where the model is split and a ValueError where it is not",
     "use transformers 5.22, or leave tp_size at 1",
     "accelerate/accelerator.py, _prepare_tp"},
    {"tp-import",
     Severity::Error,
     {{1, 10}, {1, 13}},
     {{5, 23}},
     isReplicatedSplit,
     tensorSize,
     "before accelerate 1.13, tensor parallelism alone imports "
     "ReplicateParallel too, which transformers 5.23 no longer has: every rank "
     "stops with an ImportError",
     "use accelerate 1.13, or transformers 5.22",
     "accelerate PR 3908"},
    {"tp-skipped",
     Severity::Note,
     {{1, 13}},
     {},
     isReplicatedSplit,
     tensorSize,
     "a model without DTensors is not prepared for tensor parallelism at all: "
     "each rank trains the whole model on the same batch, after one warning",
     "load it split: from_pretrained(..., distributed_config="
     "DistributedConfig(tp_size=N))",
     "accelerate PR 3945"},
    {"ep-loading",
     Severity::Note,
     {{1, 6}},
     {},
     loadsExperts,
     loadingKey,
     "if the script loads this mixture with expert parallelism, the broadcast "
     "of rank 0's weights overwrites the experts of all other ranks",
     "write fsdp_cpu_ram_efficient_loading: false for expert parallelism",
     "transformers PR 45662 (open)"},
    {"experts-as-units",
     Severity::Warning,
     {},
     {},
     wrapsExperts,
     classesKey,
     "a unit around one expert is gathered by the ranks alone that have a "
     "token for it: the others never join, and the job hangs",
     "wrap the decoder layer",
     "accelerate#3832, pytorch#126616"},
    {"ignored-gradients",
     Severity::Warning,
     {{1, 10}},
     {},
     ignoresModules,
     ignoredKey,
     "nobody reduces the gradients of ignored modules under FSDP2: what is "
     "trained in them drifts apart between ranks (accel-run reduces them)",
     "freeze them, or reduce their gradients in the script",
     "torch/distributed/fsdp/_fully_shard: ignored_params get no hooks"},
    {"offload-clipping",
     Severity::Warning,
     {{1, 6}, {1, 7}},
     {},
     offloads2,
     offloadKey,
     "accelerate 1.6 starts NCCL alone, and clipping reduces the norm of "
     "offloaded gradients on the CPU: it stops with \"No backend type "
     "associated with device type cpu\"",
     "use accelerate 1.7, or max_grad_norm 0",
     "accelerate PR 3574, axolotl#3058"},
    {"loading-by-position",
     Severity::Warning,
     {{1, 6}, {1, 14}},
     {},
     loadsQuantized2,
     loadingKey,
     "before accelerate 1.14, rank 0 walks its weights by position and the "
     "others by name: scales of a quantised model are entries that the others "
     "do not have, and all ranks hang",
     "write fsdp_cpu_ram_efficient_loading: false, or use accelerate 1.14",
     "accelerate PR 3982"},
    {"accumulation-syncs",
     Severity::Note,
     {{1, 6}, {1, 11}},
     {},
     accumulates2,
     versionKey,
     "before accelerate 1.11, accumulate() does not turn FSDP2's reduction "
     "off: every micro-batch reduces its gradients",
     "use accelerate 1.11",
     "accelerate PR 3762"},
    {"zero-no-sync",
     Severity::Warning,
     {{0, 11}, {1, 9}},
     {},
     partitionsGradients,
     stageKey,
     "before accelerate 1.9, accumulate() enters DeepSpeed's no_sync, which "
     "stage 2 and 3 refuse with an AssertionError (DeepSpeed 0.16 and later)",
     "use accelerate 1.9, or ZeRO stage 1",
     "accelerate PR 3656"},
    {"sp-trainer",
     Severity::Warning,
     {{1, 13}},
     {{5, 0}, {5, 4}},
     hasSequence,
     spSize,
     "accelerate makes no device mesh for DeepSpeed's sequence parallelism "
     "from 1.13 on, and Trainer before transformers 5.4 asks for it: it stops "
     "with \"'NoneType' object is not subscriptable\"",
     "use transformers 5.4, or accelerate 1.12",
     "accelerate PR 3914, PR 3916, transformers PR 43799"},
    {"sharded-resume",
     Severity::Warning,
     {{1, 6}, {1, 15}},
     {},
     shardedState2,
     stateKey,
     "before accelerate 1.15, the optimizer's shards are saved and not loaded "
     "again under FSDP2: load_state stops with \"Missing key in checkpoint "
     "state_dict: optimizer.state.0.step\"",
     "use accelerate 1.15, or FULL_STATE_DICT",
     "accelerate#3971, PR 4105"},
    {"tp-optimizer",
     Severity::Warning,
     {{1, 10}, {1, 12}},
     {},
     hasTensor,
     tensorSize,
     "before accelerate 1.12, the optimizer keeps the parameters from before "
     "they were split: those that the model uses are never updated",
     "use accelerate 1.12",
     "accelerate PR 3835"},
    {regionsUnsharded.code,
     Severity::Warning,
     {regionsUnsharded.since, regionsUnsharded.until},
     {},
     compilesRegions2,
     regionalKey,
     regionsUnsharded.message,
     regionsUnsharded.hint,
     "accelerate PR 4022"},
    {"checkpointing-cache",
     Severity::Warning,
     {},
     {{4, 40}, {5, 0}},
     checkpoints,
     checkpointKey,
     "before transformers 5, a layer that FSDP recomputes fills the cache of "
     "keys and values twice: the backward stops with \"Recomputed values ... "
     "have different metadata\"",
     "load the model with use_cache=False",
     "transformers#34928, #28499"},
    {"experts-gathered",
     Severity::Warning,
     {},
     {{4, 36}, {5, 0}},
     gathersExperts,
     stageKey,
     "before transformers 5 each expert is a module: ZeRO stage 3 gathers one "
     "where a rank has a token for it and waits for ranks that have none",
     "write deepspeed_moe_layer_cls_names with the class of the block",
     "DeepSpeed PR 4966, PR 7604, LLaMA-Factory#9628"},
    {"qlora-offload",
     Severity::Warning,
     {},
     {},
     quantizedOffload,
     offloadKey,
     "quantized weights and fsdp_offload_params: pinning their storage stops "
     "with \"invalid argument\"",
     "write fsdp_offload_params: false",
     "axolotl#2743"},
    {"sharded-saving",
     Severity::Note,
     {},
     {},
     shardedState,
     stateKey,
     "SHARDED_STATE_DICT is for accelerator.save_state: the Trainer's "
     "save_model writes no whole weights with it",
     "write FULL_STATE_DICT, or merge shards with `accelerate merge-weights`",
     "transformers#30491, #31034"},
};

} // namespace

void checkPairs(const Subject &subject) {
  if (!subject.config)
    return;
  for (const PairRule &rule : rules)
    if (rule.accelerate.has(subject.version) &&
        rule.transformers.has(subject.transformers) && rule.applies(subject))
      subject.report(rule.severity, rule.code, rule.place(subject),
                     rule.message, rule.hint);
}

} // namespace accel::lint
