//===- MegatronInputs.cpp - Jobs of Megatron-LM ---------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Inputs/MegatronInputs.h"

#include "frontends/Accelerate/SettingDiagnostic.h"
#include "frontends/HuggingFace/ModelConfig.h"
#include "frontends/Lint/Megatron.h"
#include "runtime/plan/Stages.h"

#include <nlohmann/json.hpp>

namespace accel {

namespace {

/// What Accelerate reads of a model's configuration.
struct Sizes {
  int64_t layers = 0, hidden = 0, heads = 0, vocabulary = 0, positions = 0;
};

std::optional<Sizes> sizesOf(const huggingface::ModelConfig &config) {
  if (const auto *gpt2 = std::get_if<huggingface::Gpt2Config>(&config.family))
    return Sizes{gpt2->layers, gpt2->hiddenSize, gpt2->heads, gpt2->vocabSize,
                 gpt2->maxPositions};
  const auto *llama = std::get_if<huggingface::LlamaConfig>(&config.family);
  if (!llama || llama->family != huggingface::Family::Llama)
    return std::nullopt;
  return Sizes{llama->layers, llama->hiddenSize, llama->heads, llama->vocabSize,
               llama->maxPositions};
}

/// --make-vocab-size-divisible-by is 128, for each tensor-parallel rank
/// (megatron/training/tokenizer/tokenizer.py).
int64_t filledUp(int64_t vocabulary, int64_t tensorParallel) {
  const int64_t multiple = 128 * std::max<int64_t>(tensorParallel, 1);
  return (vocabulary + multiple - 1) / multiple * multiple;
}

/// The GPT of these sizes as a config.json of transformers' family with the
/// same operators: GPT-NeoX where positions are rotary, else GPT-2.
std::string gptOf(const Sizes &sizes, const MegatronSettings &megatron) {
  nlohmann::json json;
  const int64_t vocabulary =
      filledUp(sizes.vocabulary, *megatron.tensorParallel);
  if (*megatron.rotaryPositions)
    json = {{"architectures", {"GPTNeoXForCausalLM"}},
            {"model_type", "gpt_neox"},
            {"num_hidden_layers", sizes.layers},
            {"hidden_size", sizes.hidden},
            {"num_attention_heads", sizes.heads},
            {"intermediate_size", 4 * sizes.hidden},
            {"vocab_size", vocabulary},
            {"max_position_embeddings", sizes.positions},
            {"hidden_act", "gelu"},
            {"rotary_pct", 1.0},
            {"use_parallel_residual", false},
            {"tie_word_embeddings", true},
            {"hidden_dropout", *megatron.hiddenDropout},
            {"attention_dropout", *megatron.attentionDropout}};
  else
    json = {{"architectures", {"GPT2LMHeadModel"}},
            {"model_type", "gpt2"},
            {"n_layer", sizes.layers},
            {"n_embd", sizes.hidden},
            {"n_head", sizes.heads},
            {"n_inner", 4 * sizes.hidden},
            {"vocab_size", vocabulary},
            {"n_positions", sizes.positions},
            {"activation_function", "gelu"},
            {"resid_pdrop", *megatron.hiddenDropout},
            {"embd_pdrop", *megatron.hiddenDropout},
            {"attn_pdrop", *megatron.attentionDropout}};
  return json.dump();
}

} // namespace

bool takeMegatronModel(PlanInputs &inputs, const PlanInputs *known,
                       DiagnosticEngine &engine) {
  const AccelerateConfig &accelerate = inputs.job.accelerate;
  if (known && known->sized) {
    inputs.sized = known->sized;
    // Accelerate asks for FlashAttention since 1.13.
    if (!*accelerate.megatron->flashAttention)
      inputs.trainer = "megatron-core-attention";
    if (*accelerate.megatron->tensorParallel ==
        *known->job.accelerate.megatron->tensorParallel)
      return true; // the same GPT
    inputs.model = *known->sized;
  }
  const auto &type = accelerate.distributedType;
  const MegatronSettings &megatron = *accelerate.megatron;
  const huggingface::ModelConfig *config = inputs.model.config();
  const std::optional<Sizes> sizes = config ? sizesOf(*config) : std::nullopt;
  if (!sizes) {
    if (!config || checkMegatronFamily(accelerate, config->modelType, engine))
      engine.report(diagnosticAt(
          type, Severity::Error, notSupportedCode,
          "of the models that Accelerate hands to Megatron-LM those of the "
          "types gpt2 and llama are planned",
          "pass such a model, or use FSDP"));
    return false;
  }
  auto gpt = huggingface::parseModelConfig(gptOf(*sizes, megatron),
                                           "Megatron-LM's GPT", engine);
  if (!gpt)
    return false;
  if (!inputs.sized)
    inputs.sized = std::make_shared<const Model>(std::move(inputs.model));
  inputs.model = Model(std::move(*gpt));
  // Accelerate asks for FlashAttention since 1.13.
  if (!*megatron.flashAttention)
    inputs.trainer = "megatron-core-attention";
  engine.report(diagnosticAt(
      type, Severity::Note, "megatron-model",
      "Megatron-LM trains a GPT of its own with " +
          std::to_string(sizes->layers) + " layers of " +
          std::to_string(sizes->hidden) +
          ": Accelerate hands it these sizes, "
          "and not the model's norms, MLP and key-value heads",
      "other_megatron_args of MegatronLMPlugin, in the script, say more"));
  return true;
}

void checkMegatron(const PlanInputs &inputs, DiagnosticEngine &engine) {
  if (inputs.executor != FrameworkKind::Megatron)
    return;
  const AccelerateConfig &accelerate = inputs.job.accelerate;
  const MegatronSettings &megatron = *accelerate.megatron;
  auto refuse = [&](bool condition, const auto &setting, const char *what,
                    const char *hint) {
    if (condition)
      engine.report(diagnosticAt(setting, Severity::Error, notSupportedCode,
                                 std::string(what) + " is not planned", hint));
  };
  refuse(*megatron.customFsdp, megatron.customFsdp, "Megatron's own FSDP",
         "leave megatron_lm_use_custom_fsdp out");
  refuse(*megatron.expertParallel > 1 || *megatron.expertTensorParallel > 1,
         megatron.expertParallel, "expert parallelism under Megatron-LM",
         "leave the sizes of expert parallelism at 1");
  checkMegatronOptimizer(megatron, engine);
  // On the host its states are fp32, as without it.
  refuse(*megatron.preciseOptimizer && !*megatron.optimizerCpuOffload,
         megatron.preciseOptimizer,
         "an optimizer whose states have other dtypes",
         "leave megatron_lm_use_precision_aware_optimizer out");
  const bool full = *megatron.recomputeGranularity == "full";
  refuse(full && (*megatron.recomputeMethod == "block" ||
                  *megatron.recomputeLayers > 1),
         megatron.recomputeLayers,
         "full recomputation of other parts than each single layer",
         "write recompute_method: uniform with recompute_num_layers: 1, or "
         "recompute_granularity: selective");
  refuse(*accelerate.mixedPrecision == MixedPrecision::Fp8,
         accelerate.mixedPrecision, "fp8 under Megatron-LM",
         "write mixed_precision: bf16");
  const auto &optimizer = inputs.job.optimizer.name;
  if (optimizer->find("adam") == std::string::npos && *optimizer != "sgd")
    engine.report(diagnosticAt(optimizer, Severity::Error, "invalid-value",
                               "Megatron-LM has no optimizer '" +
                                   printable(*optimizer, 40) +
                                   "': Accelerate stops with a ValueError",
                               "use adamw or sgd"));
  refuse(inputs.adapter.has_value() || inputs.job.quantization.has_value(),
         accelerate.distributedType,
         "an adapter or a quantised model under Megatron-LM", "use FSDP");
}

} // namespace accel
