//===- AxolotlRules.cpp - Where axolotl refuses its own file --------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// axolotl 0.18 (utils/schemas/validation.py, peft.py, config.py) stops before
// anything is loaded where settings of memory, sharding and precision exclude
// each other. Each rule is one row: when, what axolotl says, and the fix. Those
// about datasets, logs and templates change no plan and are left to axolotl.
//
//===----------------------------------------------------------------------===//
#include "frontends/Scripts/ReadSettings.h"

#include <algorithm>
#include <charconv>

namespace accel::scripts {
namespace {

/// `when`: conditions joined by " & ", the first one places the finding.
///   name          true as Python judges it        !name      not so
///   name=a|b      one of these values             name!=a    another
///   name~text     contains it                     name>1     a larger number
/// A dot enters a mapping; fsdp_version is what axolotl resolves it to, and
/// shards either way of asking for FSDP.
struct Rule {
  const char *when;
  const char *what, *fix;
};

constexpr Rule rules[] = {
    {"gradient_accumulation_steps & batch_size",
     "gradient_accumulation_steps and batch_size say the same", "keep one"},
    {"sample_packing & rl",
     "sample_packing does not work with training by preferences",
     "sample_packing: false"},
    {"deepspeed & fsdp", "deepspeed and fsdp exclude each other", "keep one"},
    {"load_in_8bit & !adapter", "a quantised model is not trained whole",
     "write adapter: lora, or load_in_8bit: false"},
    {"load_in_4bit & !adapter", "a quantised model is not trained whole",
     "write adapter: qlora, or load_in_4bit: false"},
    {"adapter=qlora & load_in_8bit", "qlora is not loaded in 8 bits",
     "load_in_4bit: true alone"},
    {"adapter=qlora & gptq", "qlora quantises by itself, not by gptq",
     "adapter: lora"},
    {"adapter=lora|qlora & flash_attn_fuse_mlp",
     "fused modules have no place for adapters", "flash_attn_fuse_mlp: false"},
    {"use_onebitllms & adapter=lora|qlora", "onebitllms has no adapters",
     "leave out one of them"},
    {"lora_mlp_kernel & adapter=lora & load_in_8bit",
     "axolotl's kernels for adapters do not read 8-bit weights",
     "lora_mlp_kernel: false"},
    {"lora_qkv_kernel & adapter=lora & load_in_8bit",
     "axolotl's kernels for adapters do not read 8-bit weights",
     "lora_qkv_kernel: false"},
    {"lora_o_kernel & adapter=lora & load_in_8bit",
     "axolotl's kernels for adapters do not read 8-bit weights",
     "lora_o_kernel: false"},
    {"lora_mlp_kernel & fsdp_config & fsdp_version=1",
     "axolotl's kernels for adapters do not work under FSDP1",
     "fsdp_version: 2"},
    {"lora_qkv_kernel & fsdp_config & fsdp_version=1",
     "axolotl's kernels for adapters do not work under FSDP1",
     "fsdp_version: 2"},
    {"lora_o_kernel & fsdp_config & fsdp_version=1",
     "axolotl's kernels for adapters do not work under FSDP1",
     "fsdp_version: 2"},
    {"quantize_moe_experts & lora_target_linear",
     "quantised experts take adapters by lora_target_parameters",
     "write lora_target_parameters in place of lora_target_linear"},
    {"quantize_moe_experts & adapter!=lora|qlora",
     "quantised experts are trained by an adapter", "adapter: qlora"},
    {"quantize_moe_experts & !load_in_4bit & !load_in_8bit",
     "quantize_moe_experts needs a quantised model", "load_in_4bit: true"},
    {"qat & peft", "QAT trains the whole model", "leave out one of them"},
    {"qat & load_in_8bit", "QAT trains the whole model", "load_in_8bit: false"},
    {"qat & load_in_4bit", "QAT trains the whole model", "load_in_4bit: false"},
    {"model_quantization_config & load_in_8bit",
     "the model would be quantised twice", "keep one of them"},
    {"model_quantization_config & load_in_4bit",
     "the model would be quantised twice", "keep one of them"},
    {"model_quantization_config=Mxfp4Config & "
     "fsdp_config.cpu_ram_efficient_loading",
     "MXFP4 weights are not loaded by rank 0 alone",
     "cpu_ram_efficient_loading: false"},
    {"fsdp_version=2 & rl=dpo|kto|orpo|ipo & load_in_8bit",
     "FSDP2 does not train quantised models by preferences",
     "use DeepSpeed, or fsdp_version: 1"},
    {"fsdp_version=2 & rl=dpo|kto|orpo|ipo & load_in_4bit",
     "FSDP2 does not train quantised models by preferences",
     "use DeepSpeed, or fsdp_version: 1"},
    {"optimizer~8bit & fsdp_config.offload_params & fsdp_version=1",
     "FSDP1 with offloaded parameters has no 8-bit optimizer on the CPU",
     "offload_params: false, or fsdp_version: 2 with adamw_torch_8bit"},
    {"optimizer=adamw_8bit|adamw_bnb_8bit & fsdp_config & fsdp_version=2",
     "bitsandbytes' 8-bit optimizer does not read FSDP2's shards",
     "optimizer: adamw_torch_8bit"},
    {"optimizer=paged_adamw_8bit|adamw_8bit|adamw_bnb_8bit & "
     "tensor_parallel_size>1",
     "bitsandbytes' 8-bit optimizers do not read split weights",
     "optimizer: adamw_torch"},
    {"optimizer=muon & deepspeed", "Muon does not work under DeepSpeed",
     "fsdp_version: 2 shards it"},
    {"optimizer=muon & shards & fsdp_version!=2",
     "Muon needs whole matrices, which FSDP1 does not keep", "fsdp_version: 2"},
    {"optimizer~flash_ & deepspeed",
     "flash optimizers do not work under DeepSpeed", "fsdp_version: 2"},
    {"optimizer~flash_ & shards & fsdp_version!=2",
     "flash optimizers do not work under FSDP1", "fsdp_version: 2"},
    {"optimizer=q_galore_adamw8bit & adapter",
     "Q-GaLore trains the whole model", "leave out the adapter"},
    {"optimizer=q_galore_adamw8bit & deepspeed",
     "Q-GaLore does not work under DeepSpeed", "fsdp_version: 2"},
    {"optimizer=q_galore_adamw8bit & shards & fsdp_version!=2",
     "Q-GaLore does not work under FSDP1", "fsdp_version: 2"},
    {"fsdp_config.cpu_offload_pin_memory=false & fsdp_version!=2",
     "FSDP1 always pins what it offloads", "fsdp_version: 2"},
    {"fsdp_config.cpu_offload_pin_memory=false & !fsdp_config.offload_params",
     "nothing is offloaded that could be pinned", "offload_params: true"},
    {"fp8_enable_fsdp_float8_all_gather & fsdp_version!=2",
     "gathering in fp8 is FSDP2's", "fsdp_version: 2"},
    {"fp32_norms & !fsdp_config", "fp32_norms is for FSDP2",
     "leave it out, or write fsdp_config"},
    {"fp32_norms & fsdp_version!=2",
     "units of FSDP1 have one dtype, so norms cannot stay in fp32",
     "fsdp_version: 2"},
    {"cut_cross_entropy & chunked_cross_entropy",
     "only one of the losses can replace the model's", "keep one"},
    {"cut_cross_entropy & liger_cross_entropy",
     "only one of the losses can replace the model's", "keep one"},
    {"cut_cross_entropy & liger_fused_linear_cross_entropy",
     "only one of the losses can replace the model's", "keep one"},
    {"chunked_cross_entropy & liger_cross_entropy",
     "only one of the losses can replace the model's", "keep one"},
    {"chunked_cross_entropy & liger_fused_linear_cross_entropy",
     "only one of the losses can replace the model's", "keep one"},
    {"liger_cross_entropy & liger_fused_linear_cross_entropy",
     "only one of the losses can replace the model's", "keep one"},
    {"activation_offloading & !gradient_checkpointing",
     "what is moved to the host are the inputs of checkpoints",
     "gradient_checkpointing: true"},
    {"selective_checkpointing & !gradient_checkpointing",
     "selective checkpointing is a kind of checkpointing",
     "gradient_checkpointing: true"},
    {"selective_checkpointing & gradient_checkpointing_kwargs.use_reentrant",
     "selective checkpointing is non-reentrant", "use_reentrant: false"},
    {"unfrozen_parameters & gradient_checkpointing_kwargs.use_reentrant",
     "reentrant checkpoints cut the graph of a model that is frozen in part",
     "use_reentrant: false"},
    {"deepcompile & !deepspeed", "DeepCompile is DeepSpeed's",
     "name a JSON in deepspeed"},
    {"torch_compile_options & !torch_compile",
     "nothing is compiled with these options", "torch_compile: true"},
    {"flash_optimum & bf16", "BetterTransformer does not work with autocast",
     "leave out flash_optimum"},
    {"flash_optimum & fp16", "BetterTransformer does not work with autocast",
     "leave out flash_optimum"},
    {"relora & shards", "ReLoRA merges whole matrices, which FSDP shards",
     "train with DDP"},
    {"relora & deepspeed", "ReLoRA does not work under DeepSpeed",
     "train with DDP"},
    {"context_parallel_size>1 & sample_packing & micro_batch_size>1",
     "ring attention takes one packed sequence at a time",
     "micro_batch_size: 1"},
    {"attn_implementation & flash_attention",
     "attn_implementation and the flags of before exclude each other",
     "keep attn_implementation"},
    {"attn_implementation & sdp_attention",
     "attn_implementation and the flags of before exclude each other",
     "keep attn_implementation"},
    {"attn_implementation & eager_attention",
     "attn_implementation and the flags of before exclude each other",
     "keep attn_implementation"},
    {"attn_implementation & flex_attention",
     "attn_implementation and the flags of before exclude each other",
     "keep attn_implementation"},
    {"base_model~falcon & fsdp", "axolotl does not shard Falcon by FSDP",
     "use DeepSpeed"},
    {"base_model~mpt & gradient_checkpointing",
     "axolotl does not checkpoint MPT", "gradient_checkpointing: false"},
    {"lora_mlp_kernel & trust_remote_code",
     "axolotl's kernels for adapters do not patch a model's own code",
     "lora_mlp_kernel: false"},
    {"lora_qkv_kernel & trust_remote_code",
     "axolotl's kernels for adapters do not patch a model's own code",
     "lora_qkv_kernel: false"},
    {"lora_o_kernel & trust_remote_code",
     "axolotl's kernels for adapters do not patch a model's own code",
     "lora_o_kernel: false"},
    {"lr_groups & loraplus_lr_ratio",
     "lr_groups and loraplus_lr_ratio both group the parameters", "keep one"},
    {"peft_layers_pattern & !peft_layers_to_transform",
     "peft_layers_pattern says where the numbers of layers stand, and none is "
     "given",
     "write peft_layers_to_transform"},
    {"unfrozen_parameters & adapter & peft_layers_to_transform",
     "unfrozen_parameters and peft_layers_to_transform choose different "
     "parameters to train",
     "keep one of them"},
    {"activation_offloading=true|legacy|disk & selective_checkpointing",
     "selective checkpointing goes with moving hidden states alone",
     "activation_offloading: hidden_states"},
    {"activation_offloading=hidden_states & "
     "gradient_checkpointing_kwargs.use_reentrant & unfrozen_parameters",
     "reentrant checkpoints cut the graph of a model that is frozen in part",
     "use_reentrant: false"},
    {"base_model~nemotron-h & gradient_checkpointing & !sample_packing",
     "layers of Nemotron-H are recomputed under axolotl's packing alone",
     "sample_packing: true"},
    {"rl=grpo & trl.use_liger_loss & context_parallel_size>1",
     "Liger's GRPO loss does not take split sequences",
     "use_liger_loss: false"},
    {"batch_flattening=true & attn_implementation=eager|sdpa",
     "flattened batches need attention that takes lengths",
     "attn_implementation: flash_attention_2"},
    {"scaling_softmax & attn_implementation!=flex_attention",
     "scaling_softmax is computed by flex attention",
     "attn_implementation: flex_attention"},
    {"relora & !jagged_restart_steps",
     "ReLoRA needs steps at which it restarts", "write jagged_restart_steps"},
    {"rl=ebft & !ebft", "rl: ebft needs its section",
     "write ebft: {mode: structured}"},
    {"torch_compile & rl=ebft & ebft.mode=strided & gradient_checkpointing",
     "a compiled model does not repeat its block masks when it is recomputed",
     "torch_compile: false"},
    {"max_memory & gpu_memory_limit", "both limit the memory of a device",
     "keep one"},
};

/// Answers a rule's conditions.
class Answers {
public:
  explicit Answers(const GivenArguments &given) : given(given) {}

  /// The argument that the first condition names.
  const Given *place(std::string_view when) const {
    std::string_view name = when.substr(0, when.find_first_of(" =~>!."));
    return name == "fsdp_version" ? either("fsdp_version", "fsdp_config")
                                  : given.find(std::string(name));
  }

  bool all(std::string_view when) const {
    while (!when.empty()) {
      const size_t end = std::min(when.find(" & "), when.size());
      if (!one(when.substr(0, end)))
        return false;
      when.remove_prefix(std::min(end + 3, when.size()));
    }
    return true;
  }

private:
  const GivenArguments &given;

  const Given *either(const char *first, const char *second) const {
    const Given *found = given.find(first);
    return found ? found : given.find(second);
  }

  const yaml::Node *node(std::string_view name) const {
    const size_t dot = name.find('.');
    const Given *found = given.find(std::string(name.substr(0, dot)));
    if (!found || dot == name.npos)
      return found ? found->value : nullptr;
    if (!found->value->isMapping())
      return nullptr;
    const std::string key(name.substr(dot + 1));
    const yaml::Node *inner = found->value->find(key);
    return inner ? inner : found->value->find("fsdp_" + key);
  }

  /// bool(value) of Python; the flags of `fsdp: [full_shard]` too.
  static bool isTrue(const yaml::Node *value) {
    if (!value || value->isNull())
      return false;
    if (value->kind == yaml::Kind::Bool)
      return value->boolean;
    if (value->isMapping())
      return !value->entries.empty();
    if (value->isSequence())
      return !value->items.empty();
    if (value->kind == yaml::Kind::Int || value->kind == yaml::Kind::Float)
      return value->number != 0;
    return !value->text.empty();
  }

  std::string text(std::string_view name) const {
    if (name == "fsdp_version")
      return version();
    const yaml::Node *value = node(name);
    if (!value || !value->isScalar())
      return "";
    return value->kind == yaml::Kind::Bool ? (value->boolean ? "true" : "false")
                                           : value->text;
  }

  /// check_fsdp_version_in_fsdp_config: 1 where nobody says it.
  std::string version() const {
    for (const char *name :
         {"fsdp_version", "fsdp_config.version", "fsdp_config.fsdp_version"})
      if (const yaml::Node *value = node(name); isTrue(value))
        return value->text;
    return isTrue(node("fsdp_config")) ? "1" : "";
  }

  bool truth(std::string_view name) const {
    if (name == "shards")
      return isTrue(node("fsdp")) || isTrue(node("fsdp_config"));
    return isTrue(node(name));
  }

  static bool among(std::string_view value, std::string_view list) {
    while (!list.empty()) {
      const size_t bar = std::min(list.find('|'), list.size());
      if (list.substr(0, bar) == value)
        return true;
      list.remove_prefix(std::min(bar + 1, list.size()));
    }
    return false;
  }

  bool one(std::string_view condition) const {
    if (condition.starts_with("!"))
      return !truth(condition.substr(1));
    const size_t at = condition.find_first_of("!=~>");
    const std::string_view name = condition.substr(0, at);
    if (at == condition.npos)
      return truth(name);
    const std::string value = text(name);
    if (condition[at] == '!')
      return !among(value, condition.substr(at + 2));
    const std::string_view wanted = condition.substr(at + 1);
    if (condition[at] == '=')
      return among(value, wanted);
    if (condition[at] == '~') {
      std::string lower = value;
      std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      });
      return lower.find(wanted) != lower.npos;
    }
    const yaml::Node *number = node(name);
    int64_t least = 0;
    std::from_chars(wanted.data(), wanted.data() + wanted.size(), least);
    return number && number->kind == yaml::Kind::Int && !number->huge &&
           number->integer > least;
  }
};

/// check_auto_enable_lora_kernels: an adapter that no key says otherwise of
/// runs in autograd functions of axolotl's own.
bool takesFunctions(const GivenArguments &given, const Answers &answers) {
  for (const char *key : {"lora_mlp_kernel", "lora_qkv_kernel", "lora_o_kernel",
                          "lora_embedding_kernel"})
    if (const Given *asked = given.find(key); asked && !asked->value->isNull())
      return false;
  return answers.all("adapter=lora|qlora & !rl & !trust_remote_code") &&
         !answers.all("adapter=lora & load_in_8bit") &&
         !answers.all("fsdp_config & fsdp_version=1");
}

/// Types of models whose attention patch_self_attn_lora does not find in the
/// text of transformers 5.23 (QKV_PATCHES and ORIGINAL_O_CODE of
/// monkeypatch/lora_kernels.py).
constexpr std::string_view unknownAttention[] = {
    "cohere", "deepseek_v3", "falcon", "glm4_moe", "glm4_moe_lite",
    "gpt2",   "gpt_bigcode", "gptj",   "gpt_neox", "mpt",
    "olmo2",  "olmo3",       "olmoe",  "opt",      "phi",
    "phi3",   "stablelm"};

/// With what an adapter's functions are not modelled; null: they are.
const char *unmodelledWith(const AdapterConfig &adapter,
                           const Answers &answers) {
  if (adapter.magnitude)
    return "with DoRA";
  if (adapter.bias != AdapterConfig::Bias::None)
    return "with biases that are trained";
  if (answers.all("torch_compile"))
    return "where they are compiled";
  if (answers.all("tensor_parallel_size>1"))
    return "with tensor parallelism";
  return nullptr;
}

} // namespace

void SettingsReader::checkAxolotl() {
  const Answers answers(recipe.given());
  const Given *last = nullptr;
  for (const Rule &rule : rules) {
    const Given *place = answers.place(rule.when);
    // One finding for one place: others follow from it.
    if (!place || place == last || !answers.all(rule.when))
      continue;
    last = place;
    report(engine, Severity::Error, "axolotl-stops", *place,
           std::string(rule.what) + "; axolotl stops with a ValueError",
           rule.fix);
  }
  int sizes = 0;
  const Given *any = nullptr;
  for (const char *name :
       {"micro_batch_size", "gradient_accumulation_steps", "batch_size"})
    if (const Given *size = recipe.given().find(name)) {
      ++sizes;
      any = size;
    }
  if (sizes == 1)
    report(engine, Severity::Error, "axolotl-stops", *any,
           "of micro_batch_size, gradient_accumulation_steps and batch_size "
           "two must be given; axolotl stops with a ValueError",
           "write gradient_accumulation_steps: 1");
  // Rings of attention pass flash attention's statistics on.
  for (const char *name : {"context_parallel_size", "sequence_parallel_degree"})
    if (const Given *ranks = recipe.given().find(name);
        ranks && ranks->value->kind == yaml::Kind::Int &&
        ranks->value->integer > 1 &&
        !answers.all("attn_implementation~flash") &&
        !answers.all("flash_attention"))
      report(engine, Severity::Error, "axolotl-stops", *ranks,
             std::string(name) +
                 " above 1 needs flash attention; axolotl stops with a "
                 "ValueError",
             "attn_implementation: flash_attention_2");
}

/// Layers that axolotl computes in functions of its own
/// (monkeypatch/lora_kernels.py).
void SettingsReader::readAdapterFunctions() {
  const Answers answers(recipe.given());
  const bool all = takesFunctions(recipe.given(), answers);
  AdapterConfig::Functions functions = {all || answers.all("lora_qkv_kernel"),
                                        all || answers.all("lora_o_kernel"),
                                        all || answers.all("lora_mlp_kernel")};
  if (!functions.any())
    return;
  const std::string type = typeOf(settings.model.value);
  if ((functions.projections || functions.output) &&
      std::find(std::begin(unknownAttention), std::end(unknownAttention),
                type) != std::end(unknownAttention)) {
    if (recipe.planning())
      report(
          engine, Severity::Warning, "axolotl-kernels", *given("adapter"),
          "axolotl computes attention's layers with an adapter in functions "
          "of its own" +
              std::string(all ? " where no key says otherwise" : "") +
              ", and does not know the attention of models of type '" + type +
              "': it stops with \"Original QKV code not found\"; the plan is "
              "of PEFT's layers",
          "write lora_qkv_kernel: false and lora_o_kernel: false");
    return;
  }
  if (const char *with = unmodelledWith(*settings.adapter, answers)) {
    if (recipe.planning())
      report(engine, Severity::Warning, "axolotl-kernels", *given("adapter"),
             std::string("axolotl computes layers with an adapter in autograd "
                         "functions of its own") +
                 (all ? " where no key says otherwise" : "") +
                 ", which are not modelled " + with +
                 "; the plan is of PEFT's layers, which take more memory and "
                 "time",
             "write lora_mlp_kernel, lora_qkv_kernel, lora_o_kernel and "
             "lora_embedding_kernel: false to train what is planned");
    return;
  }
  settings.adapter->functions = functions;
  for (const auto &[name, on] :
       {std::pair("lora_qkv_kernel", functions.projections),
        {"lora_o_kernel", functions.output},
        {"lora_mlp_kernel", functions.mlp}})
    row(name, on ? "true" : "false",
        all ? "axolotl's default for an adapter" : "");
}

} // namespace accel::scripts
