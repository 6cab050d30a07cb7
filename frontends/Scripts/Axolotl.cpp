//===- Axolotl.cpp - axolotl's keys as those of transformers --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// axolotl 0.18: utils/config/__init__.py (dtypes), loaders/model.py
// (quantisation, attention), core/builders/base.py (TrainingArguments),
// utils/schemas/validation.py.
//
//===----------------------------------------------------------------------===//
#include "frontends/Scripts/ReadSettings.h"

#include "frontends/Diagnostics/Regex.h"

#include <algorithm>

namespace accel::scripts {
namespace {

bool isOn(const Given *given) {
  return given && given->value->kind == yaml::Kind::Bool &&
         given->value->boolean;
}

bool says(const Given *given, const char *text) {
  return given && given->value->isString() && given->value->text == text;
}

} // namespace

void SettingsReader::translateAxolotl() {
  checkAxolotl();
  if (const Given *rl = given("rl"); rl && !rl->value->isNull()) {
    if (rl->value->text == "dpo")
      stand("trainer_task", rl->value, *rl);
    else
      refuse("rl",
             "rl: " + printable(rl->value->text) +
                 " trains by an algorithm that is not modelled yet",
             "rl: dpo and supervised training are modelled");
  }
  // The dtype of autocast and the one in which the model is loaded.
  const Given *bf16 = given("bf16"), *bfloat = given("bfloat16"),
              *fp16 = given("fp16"), *whole = given("float32");
  const bool automatic = (!bf16 && !bfloat && !fp16 && !whole) ||
                         says(bf16, "auto") || says(bf16, "full");
  const bool brain = automatic || isOn(bf16);
  if (const Given *place = bf16 ? bf16 : given("model_name_or_path")) {
    Given named = *place;
    named.written = "bf16"; // also where the file leaves it out
    stand("bf16", nodes.boolean(place->file, place->value->range, brain),
          named);
    const char *dtype =
        brain || isOn(bfloat) ? "bfloat16"
        : isOn(fp16) || isOn(given("float16")) || isOn(given("load_in_8bit"))
            ? "float16"
            : "float32";
    named.written = "torch_dtype"; // cfg.torch_dtype
    stand("dtype", nodes.text(place->file, place->value->range, dtype), named);
  }
  if (const Given *tf32 = given("tf32"); says(tf32, "auto"))
    stand("tf32", nodes.boolean(tf32->file, tf32->value->range, false), *tf32);
  if (const Given *compile = given("torch_compile"); says(compile, "auto"))
    refuse("torch_compile",
           "auto compiles or not by the torch that is installed, which is not "
           "known here",
           "write torch_compile: true or false");

  translateAxolotlOffloading();
  translateAxolotlAttention();
  translateAxolotlAdapter();

  translateAxolotlLoss();
  translateAxolotlFrozen();

  // The mesh, which axolotl gives Accelerate.
  auto axis = [&](const char *name, const char *key) {
    const Given *size = given(name);
    if (size && size->value->kind == yaml::Kind::Int &&
        size->value->integer > 1)
      accelerate.set("parallelism_config",
                     std::string("parallelism_config_") + key, size->value);
  };
  axis("dp_shard_size", "dp_shard_size");
  axis("dp_replicate_size", "dp_replicate_size");
  axis("tensor_parallel_size", "tp_size");
  axis("context_parallel_size", "cp_size");
  axis("sequence_parallel_degree", "cp_size");
  if (const Given *world = given("world_size"); world && integer("world_size"))
    accelerate.set("", "num_processes", world->value);

  // fsdp_config alone asks for FSDP.
  const Given *config = given("fsdp_config");
  if (!config || !config->value->isMapping())
    return;
  yaml::Node *copy = nodes.copy(*config->value, config->file);
  if (const Given *version = given("fsdp_version");
      version && !copy->find("fsdp_version"))
    nodes.set(*copy, "fsdp_version", version->value);
  // transformers takes version 2 where nobody says one, axolotl 1
  // (check_fsdp_version_in_fsdp_config).
  if (!copy->find("fsdp_version") && !copy->find("version"))
    nodes.set(*copy, "fsdp_version",
              nodes.integer(config->file, config->value->range, 1));
  const bool off = given("fsdp") && given("fsdp")->value->isSequence() &&
                   given("fsdp")->value->items.empty();
  if (!given("fsdp") || off || given("fsdp")->value->isNull())
    stand("fsdp", nodes.boolean(config->file, config->key, true), *config);
  stand("fsdp_config", copy, *config);
}

/// Plugins, which replace the loss: Liger's and Apple's cut cross-entropy,
/// which is on where its plugin is (integrations/cut_cross_entropy/args.py).
void SettingsReader::translateAxolotlLoss() {
  const Given *cut = given("cut_cross_entropy"), *cutting = nullptr;
  if (isOn(cut))
    cutting = cut;
  if (const Given *plugins = given("plugins"); plugins)
    for (const yaml::Node *plugin : plugins->value->items) {
      const std::string &name = plugin->text;
      const auto names = [&](const char *part) {
        return name.find(part) != std::string::npos;
      };
      if (names("cut_cross_entropy")) {
        if (!cut || cut->value->isNull())
          cutting = plugins;
      } else if (!names("liger") && !names("swanlab") && !names("lm_eval")) {
        refuse("plugins",
               "the plugin " + printable(name) + " is not modelled yet",
               "leave it out to plan without it");
      }
    }
  const Given *fused = given("liger_fused_linear_cross_entropy");
  const Given *ligerOther = nullptr;
  for (const char *name :
       {"liger_rope", "liger_rms_norm", "liger_swiglu", "liger_glu_activation",
        "liger_layer_norm", "liger_cross_entropy", "liger_rms_norm_gated"})
    if (isOn(given(name)))
      ligerOther = given(name);
  if (isOn(fused) || ligerOther || cutting) {
    const Given &place = isOn(fused) ? *fused
                         : cutting   ? *cutting
                                     : *ligerOther;
    const auto flag = [&](bool on) {
      return nodes.boolean(place.file, place.value->range, on);
    };
    stand("use_liger_kernel", flag(true), place);
    yaml::Node *config = nodes.make(place.file, place.value->range);
    nodes.set(*config, "fused_linear_cross_entropy",
              flag(isOn(fused) || cutting));
    stand("liger_kernel_config", config, place);
  }
  if (cutting)
    note("cut-cross-entropy", cutting->written.c_str(),
         "cut cross-entropy is counted as Liger Kernel's fused loss: neither "
         "keeps the logits, but this one computes chunks of them, which cut "
         "cross-entropy has in registers",
         "");
  if (isOn(given("chunked_cross_entropy")))
    refuse("chunked_cross_entropy",
           "chunked_cross_entropy computes head and loss by a kernel that is "
           "not modelled yet",
           "liger_fused_linear_cross_entropy is modelled");
}

namespace {

/// utils/freeze.py, LayerNamePattern: a dot is one unless it is repeated by +,
/// a pattern begins where the name does, and rows that are named behind it say
/// which gradients are zeroed, not which are computed.
std::string patternOfNames(const std::string &text) {
  size_t end = text.size();
  if (const size_t rows = text.rfind('[');
      text.ends_with("]") && rows != text.npos && rows > 0 &&
      text.find_first_not_of("0123456789:", rows + 1) + 1 == end)
    end = rows;
  std::string pattern = "^(?:";
  for (size_t i = 0; i < end; ++i) {
    if (text[i] == '.' && (i + 1 == end || text[i + 1] != '+'))
      pattern += '\\';
    pattern += text[i];
  }
  return pattern + ")";
}

} // namespace

void SettingsReader::translateAxolotlFrozen() {
  const char *name = "unfrozen_parameters";
  const Given *asked = given(name);
  if (!asked || !asked->value->isSequence() || asked->value->items.empty())
    return;
  // train.py freezes by the names of a PeftModel.
  if (given("adapter") && !given("adapter")->value->isNull())
    return refuse(name,
                  "unfrozen_parameters freezes the adapter too where it does "
                  "not name base_model.model, and is not modelled beside one",
                  "leave it out: an adapter freezes the base by itself");
  std::string all;
  for (const yaml::Node *item : asked->value->items) {
    const std::string pattern = patternOfNames(item->text);
    if (!item->isString() || item->text.size() > 2000 ||
        !Regex::compile(pattern))
      return error("invalid-regex", name,
                   "'" + printable(item->text) +
                       "' is no regex of parameters' names");
    all += (all.empty() ? "" : "|") + pattern;
  }
  set(settings.trainable, all, name,
      std::to_string(asked->value->items.size()) + " patterns",
      "parameters that none matches are frozen");
}

/// core/trainers/mixins/activation_checkpointing.py: around layers that are
/// recomputed, their inputs are what is moved; with an adapter "true" and
/// "legacy" move all saved tensors and recompute nothing. `offload` of
/// gradient_checkpointing is the former spelling.
void SettingsReader::translateAxolotlOffloading() {
  const Given *layers = given("gradient_checkpointing"),
              *moves = given("activation_offloading");
  std::string mode;
  if (moves && moves->value->isScalar() && !moves->value->isNull())
    mode = moves->value->kind == yaml::Kind::Bool
               ? (moves->value->boolean ? "true" : "")
               : moves->value->text;
  const bool former = layers && layers->value->isString();
  if (former) {
    mode = layers->value->text == "offload" ? "true" : "disk";
    stand("gradient_checkpointing",
          nodes.boolean(layers->file, layers->value->range, true), *layers);
  }
  if (mode.empty())
    return;
  const char *place =
      former ? "gradient_checkpointing" : "activation_offloading";
  if (mode == "disk")
    return refuse(place, "activations on a disk are not modelled",
                  "activation_offloading: hidden_states keeps them in host "
                  "memory");
  if (mode != "hidden_states" && given("adapter") &&
      !given("adapter")->value->isNull())
    return refuse(place,
                  "with an adapter it moves every saved tensor and recomputes "
                  "nothing, which is not modelled",
                  "activation_offloading: hidden_states is modelled");
  set(settings.offloadsCheckpoints, true, place, mode,
      "the inputs of recomputed layers wait in host memory");
}

void SettingsReader::translateAxolotlAttention() {
  constexpr std::pair<const char *, const char *> flags[] = {
      {"flash_attention", "flash_attention_2"},
      {"sdp_attention", "sdpa"},
      {"eager_attention", "eager"},
      {"flex_attention", "flex_attention"}};
  if (isOn(given("xformers_attention")))
    refuse("xformers_attention", "xformers' attention is not modelled yet",
           "flash_attention is modelled");
  if (given("attn_implementation") &&
      !given("attn_implementation")->value->isNull())
    return;
  for (const auto &[flag, kernel] : flags)
    if (const Given *asked = given(flag); isOn(asked))
      stand("attn_implementation",
            nodes.text(asked->file, asked->value->range, kernel), *asked);
}

void SettingsReader::translateAxolotlAdapter() {
  const Given *adapter = given("adapter");
  if (!adapter || adapter->value->isNull() || adapter->value->text.empty())
    return;
  const std::string kind = adapter->value->text;
  if (kind != "lora" && kind != "qlora")
    return refuse("adapter",
                  "adapters of the kind " + printable(kind) +
                      " are not modelled yet",
                  "lora and qlora are modelled");
  if (const Given *trained = given("lora_model_dir");
      trained && !trained->value->isNull())
    return refuse("lora_model_dir",
                  "going on with an adapter is not read from axolotl's files "
                  "yet",
                  "pass it with --adapter");
  const yaml::Range &place = adapter->value->range;
  const auto flag = [&](const char *name) {
    stand(name, nodes.boolean(adapter->file, place, true), *adapter);
  };
  flag("use_peft");
  stand("lora_task_type", nodes.text(adapter->file, place, "CAUSAL_LM"),
        *adapter);
  if (isOn(given("lora_target_linear"))) {
    if (const Given *linear = given("lora_target_linear"))
      stand("lora_target_modules",
            nodes.text(linear->file, linear->value->range, "all-linear"),
            *linear);
  } else if (!given("lora_target_modules") &&
             !given("lora_target_parameters")) {
    error("invalid-value", "adapter",
          "axolotl needs lora_target_modules or lora_target_linear for "
          "adapter: " +
              kind,
          "write lora_target_linear: true");
  }
  if (kind != "qlora")
    return;
  if (!isOn(given("load_in_4bit")))
    return error("invalid-value", "adapter",
                 "adapter: qlora needs load_in_4bit: true; axolotl stops "
                 "with a ValueError",
                 "write load_in_4bit: true");
  if (given("bnb_config_kwargs") &&
      !given("bnb_config_kwargs")->value->isNull())
    return refuse("bnb_config_kwargs",
                  "other ways of quantisation are not read from axolotl's "
                  "files yet",
                  "pass --quantize");
  flag("use_bnb_nested_quant");
  stand("bnb_4bit_quant_storage", nodes.text(adapter->file, place, "bfloat16"),
        *adapter);
}

} // namespace accel::scripts
