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
bool isQuantized(const Subject &s) {
  return s.tree && s.tree->quantization.starts_with("bitsandb");
}
bool quantizedFsdp2(const Subject &s) { return s.isFsdp2() && isQuantized(s); }
bool quantizedOffload(const Subject &s) {
  return s.isFsdp() && !s.isFsdp2() && isQuantized(s) &&
         *s.config->offloadParams;
}
bool shardedState(const Subject &s) {
  return s.tree && s.isFsdp() && s.config->sharded() && stateKey(s) &&
         *s.config->stateDictType == StateDictType::Sharded;
}

const PairRule rules[] = {
    {"cp-skipped",
     Severity::Warning,
     {{1, 12}, {1, 13}},
     {},
     hasContext,
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
     {{1, 10}},
     {{5, 23}},
     isSplit,
     tensorSize,
     "FSDP2 with tensor parallelism imports ReplicateParallel, which "
     "transformers 5.23 no longer has: every rank of a split model stops with "
     "an ImportError",
     "use transformers 5.22, or leave tp_size at 1",
     "accelerate/accelerator.py, _prepare_tp"},
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
    {"qlora-fsdp2",
     Severity::Warning,
     {{1, 6}},
     {},
     quantizedFsdp2,
     versionKey,
     "weights of bitsandbytes are not sharded by FSDP2: preparing such a model "
     "stops",
     "write fsdp_version: 1",
     "accelerate#3874"},
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
