//===- FsdpTraining.cpp - fsdp_config: what happens in training -----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Activation checkpointing, prefetch, loading and state dicts, as
// FullyShardedDataParallelPlugin reads them in every rank.
//
//===----------------------------------------------------------------------===//

#include "frontends/Accelerate/Reader.h"

using namespace accel;

void AccelerateReader::readCheckpointing(int fsdpVersion) {
  flag(config.activationCheckpointing, fsdp, "fsdp_activation_checkpointing",
       false);
  Field field = in(fsdp, "fsdp_activation_checkpointing");
  Field policy = in(fsdp, "fsdp_auto_wrap_policy");
  bool unwrapped =
      *config.wrapPolicy == WrapPolicy::None ||
      (*config.wrapPolicy == WrapPolicy::Size && *config.minNumParams <= 0);
  const char *hint = "write fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP";
  if (config.assumed.wrapPolicy) {
    // Whether anything is wrapped is not known.
  } else if (*config.activationCheckpointing && unwrapped) {
    if (fsdpVersion == 2)
      error("checkpointing-no-wrap", field,
            "activation checkpointing without a wrap policy: every rank stops "
            "with TypeError: 'NoneType' object is not callable",
            hint,
            *config.wrapPolicy == WrapPolicy::None
                ? fixSetting(fsdp, "fsdp_auto_wrap_policy",
                             "TRANSFORMER_BASED_WRAP")
                : yaml::Edits());
    else if (fsdpVersion == 1)
      report(Severity::Warning, "checkpointing-no-wrap", field,
             "activation checkpointing without a wrap policy wraps every "
             "module of the model separately",
             hint);
  }
  placeCheckpoints(fsdpVersion, unwrapped);
  flag(config.activationCheckpointingOffload, fsdp,
       "fsdp_activation_checkpointing_offload", false);
  Field offload = in(fsdp, "fsdp_activation_checkpointing_offload");
  if (!*config.activationCheckpointingOffload)
    return;
  if (!*config.activationCheckpointing)
    error("offload-needs-checkpointing", offload,
          "fsdp_activation_checkpointing_offload requires "
          "fsdp_activation_checkpointing",
          "write fsdp_activation_checkpointing: true",
          fixSetting(fsdp, "fsdp_activation_checkpointing", "true"));
  if (fsdpVersion == 1)
    error("offload-needs-checkpointing", offload,
          "fsdp_activation_checkpointing_offload requires fsdp_version 2",
          "write fsdp_version: 2");
}

/// Where the boundaries of recomputation are, and what becomes of parameters
/// outside of every unit: both changed from release to release.
void AccelerateReader::placeCheckpoints(int fsdpVersion, bool unwrapped) {
  const Setting<bool> &asked = config.activationCheckpointing;
  CheckpointPlacement place = CheckpointPlacement::None;
  std::string why = "no activation checkpointing";
  if (*asked && unwrapped && fsdpVersion == 1) {
    place = CheckpointPlacement::EveryModule;
    why = "without a wrap policy torch checkpoints every module";
  } else if (*asked && fsdpVersion == 2 && !before(1, 8) && before(1, 15)) {
    place = CheckpointPlacement::Children;
    why = "accelerate 1.8 to 1.14 wraps the children of a layer: attention, "
          "MLP and norms keep their inputs";
  } else if (*asked) {
    place = CheckpointPlacement::Units;
    why = "each module that the wrap policy matches keeps only its input";
  }
  setDefault(config.checkpointPlacement, place, {nullptr, "checkpoints"},
             toString(place), why, Origin::Derived);
  bool apart = fsdpVersion == 2 && !before(1, 14);
  setDefault(config.restUnits,
             apart ? RestUnits::EmbeddingAndTail : RestUnits::Root,
             {nullptr, "other parameters"},
             toString(apart ? RestUnits::EmbeddingAndTail : RestUnits::Root),
             apart ? "since 1.14 the input embedding is a unit; the final norm "
                     "and the head share one that stays gathered"
                   : "what the wrap policy does not match stays in the root "
                     "unit",
             Origin::Derived);
}

void AccelerateReader::readPrefetch(int fsdpVersion) {
  Field old = anyVersion(fsdp, "fsdp_backward_prefetch_policy");
  bool alias = old && before(1, 0);
  if (old && !alias)
    ignored(old, "since accelerate 1.0", true,
            "it is called fsdp_backward_prefetch now",
            in(fsdp, "fsdp_backward_prefetch")
                ? fixRemoval(old)
                : fixName(old, fsdp, "fsdp_backward_prefetch"));
  Field field = in(fsdp, "fsdp_backward_prefetch");
  // Both names until 0.34; the old one wins.
  if (alias && !old.isNull())
    field = old;
  std::optional<BackwardPrefetch> value;
  if (field && !field.isNull()) {
    std::string text = yaml::pythonText(field.value());
    if (equalsUpper(text, "BACKWARD_PRE") || text == "1")
      value = BackwardPrefetch::Pre;
    else if (equalsUpper(text, "BACKWARD_POST") || text == "2")
      value = BackwardPrefetch::Post;
    else if (equalsUpper(text, "NO_PREFETCH"))
      value = BackwardPrefetch::None;
    else
      error(
          "invalid-value", field,
          yaml::shortText(field.value()) +
              " is not a backward prefetch; every rank stops with a KeyError",
          didYouMean(text, {"BACKWARD_PRE", "BACKWARD_POST", "NO_PREFETCH"}),
          fixSpelling(field, {"BACKWARD_PRE", "BACKWARD_POST", "NO_PREFETCH"}));
  }
  if (value && fsdpVersion == 2 && *value != BackwardPrefetch::None) {
    // BACKWARD_PRE is what FSDP2 does by itself.
    ignored(field, "with fsdp_version 2", *value != BackwardPrefetch::Pre,
            "remove it", fixRemoval(field));
    value.reset();
  } else if (value) {
    constexpr const char *names[] = {"none", "BACKWARD_PRE", "BACKWARD_POST"};
    written(config.backwardPrefetch, *value, field,
            names[static_cast<int>(*value)]);
  } else if (fsdpVersion == 1) {
    setDefault(
        config.backwardPrefetch, BackwardPrefetch::None, field, "none",
        whyDefault(findKey("fsdp_config", "fsdp_backward_prefetch"), version));
  }

  Field forward = in(fsdp, "fsdp_forward_prefetch");
  if (fsdpVersion == 1)
    flag(config.forwardPrefetch, fsdp, "fsdp_forward_prefetch", false);
  else if (forward && fsdpVersion == 2)
    ignored(forward, "with fsdp_version 2",
            truthy(forward.value()) &&
                !equalsUpper(yaml::pythonText(forward.value()), "FALSE"),
            "remove it", fixRemoval(forward));
}

void AccelerateReader::readLoading(int fsdpVersion) {
  Field efficient = in(fsdp, "fsdp_cpu_ram_efficient_loading");
  Field sync = in(fsdp, "fsdp_sync_module_states");
  // launch looks at the YAML values themselves, where 'false' is true.
  bool wants = !before(0, 24) && (!efficient || truthy(efficient.value()));
  bool syncs = !sync || truthy(sync.value());
  if (wants && !syncs) {
    bool quoted = efficient && efficient.value().isString();
    error("loading-needs-sync", sync,
          "fsdp_sync_module_states is false while "
          "fsdp_cpu_ram_efficient_loading is " +
              std::string(!efficient ? "true by default"
                          : quoted ? "a non-empty string, which counts as true"
                                   : "true") +
              "; `accelerate launch` stops with a ValueError",
          fsdpVersion == 2 ? "remove fsdp_sync_module_states"
                           : "write fsdp_sync_module_states: true, or "
                             "fsdp_cpu_ram_efficient_loading: false",
          fsdpVersion == 2 ? fixRemoval(sync) : yaml::Edits());
  }
  flag(config.cpuRamEfficientLoading, fsdp, "fsdp_cpu_ram_efficient_loading",
       true);

  Field orig = in(fsdp, "fsdp_use_orig_params");
  if (fsdpVersion == 1) {
    flag(config.syncModuleStates, fsdp, "fsdp_sync_module_states", true);
    flag(config.useOrigParams, fsdp, "fsdp_use_orig_params", true);
    if (*config.cpuRamEfficientLoading && !*config.syncModuleStates &&
        syncs) { // 'false' in quotes passes the launch
      config.syncModuleStates.value = true;
      report(Severity::Warning, "loading-needs-sync", sync,
             "fsdp_sync_module_states is set to true again, since "
             "fsdp_cpu_ram_efficient_loading is true",
             "write fsdp_sync_module_states: true", false,
             fixRaw(sync, "true"));
    }
    return;
  }
  if (fsdpVersion == 0)
    return;
  auto means = [](const Field &f, const char *word) {
    return equalsUpper(yaml::pythonText(f.value()), word);
  };
  if (sync && (syncs || !wants))
    ignored(sync, "with fsdp_version 2", false, "remove it", fixRemoval(sync));
  if (orig)
    ignored(orig, "with fsdp_version 2, which always keeps them",
            !means(orig, "TRUE"), "remove it", fixRemoval(orig));
  config.syncModuleStates = {false, Origin::Derived, sync.key, locate(sync),
                             "FSDP2 has no such setting"};
  config.useOrigParams = {true, Origin::Derived, orig.key, locate(orig),
                          "FSDP2 always keeps them"};
}

void AccelerateReader::readStateDict(int fsdpVersion) {
  Field field = in(fsdp, "fsdp_state_dict_type");
  std::optional<StateDictType> value;
  if (field && !field.isNull()) {
    std::string text = yaml::pythonText(field.value());
    for (int i = 0; i < 3; ++i) {
      auto type = static_cast<StateDictType>(i);
      if (equalsUpper(text, toString(type)) || text == std::to_string(i + 1))
        value = type;
    }
    config.assumed.stateDict = !value;
    if (!value)
      error("invalid-value", field,
            yaml::shortText(field.value()) +
                " is not a state dict type; every rank stops with a KeyError",
            fsdpVersion == 1 ? "write FULL_STATE_DICT, SHARDED_STATE_DICT or "
                               "LOCAL_STATE_DICT"
                             : "write FULL_STATE_DICT or SHARDED_STATE_DICT",
            fixSpelling(field, {"FULL_STATE_DICT", "SHARDED_STATE_DICT"}));
    else if (*value == StateDictType::Local && fsdpVersion == 2)
      error("invalid-value", field, "FSDP2 does not support LOCAL_STATE_DICT",
            "write SHARDED_STATE_DICT or FULL_STATE_DICT");
  }
  StateDictType byDefault =
      fsdpVersion == 1 ? StateDictType::Full : StateDictType::Sharded;
  if (value)
    written(config.stateDictType, *value, field, toString(*value));
  else
    setDefault(config.stateDictType, byDefault, field, toString(byDefault),
               "Accelerate's default with fsdp_version " +
                   std::to_string(fsdpVersion == 1 ? 1 : 2));
}
