//===- Preference.cpp - Which trainer, which lengths, which loss ----------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// SFTTrainer, DPOTrainer and GRPOTrainer of trl 1.10.
//
//===----------------------------------------------------------------------===//
#include "frontends/Scripts/ReadSettings.h"
#include "frontends/Scripts/RemovedArguments.h"

#include <algorithm>

namespace accel::scripts {
namespace {

/// _CHUNKED_LM_HEAD_CHUNK_SIZE of trl/trainer/sft_trainer.py.
constexpr int64_t trlLossRows = 256;

} // namespace

void SettingsReader::readTrainer() {
  if (!hasScript)
    return;
  switch (recipe.reader()) {
  case Reader::Trainer:
  case Reader::Axolotl:
  case Reader::LlamaFactory:
    settings.trainer = TrainerKind::Trainer;
    break;
  case Reader::Sft:
    settings.trainer = TrainerKind::Sft;
    break;
  case Reader::Dpo:
    settings.trainer = TrainerKind::Dpo;
    break;
  case Reader::Grpo:
    settings.trainer = TrainerKind::Grpo;
    break;
  }
  if (const Given *task = given("trainer_task")) { // of axolotl, LLaMA-Factory
    if (task->value->text == "dpo")
      settings.trainer = TrainerKind::Dpo;
  }
  if (settings.trainer == TrainerKind::Dpo)
    settings.sequencesPerSample = 2;
}

void SettingsReader::readLength() {
  if (settings.trainer == TrainerKind::Grpo) {
    const std::optional<int64_t> completion = integer("max_completion_length");
    if (!completion)
      return;
    // Prompts are as long as the data has them.
    note("prompt-length", "max_completion_length",
         "GRPO trains on prompt and completion; TRL bounds the completion "
         "alone, by " +
             std::to_string(*completion) + " tokens",
         "pass --seq-len with both together");
    return set(settings.sequenceLength, completion, "max_completion_length",
               std::to_string(*completion));
  }
  if (std::optional<int64_t> length = integer("max_length")) {
    if (*length < 1)
      return error("invalid-value", "max_length",
                   "'max_length' is " + std::to_string(*length), "");
    const bool packed = truth("packing");
    set(settings.sequenceLength, length, "max_length", std::to_string(*length),
        packed ? "samples are packed to this length"
        : given("max_length")
            ? "each sample is taken to be as long as the longest"
            : "");
  }
  if (truth("padding_free") ||
      (truth("packing") && text("packing_strategy") != "wrapped" &&
       settings.trainer == TrainerKind::Sft))
    note("packed-samples", given("padding_free") ? "padding_free" : "packing",
         "samples of a batch are one sequence without padding; attention is "
         "counted over the whole length of each",
         "");
}

void SettingsReader::readLoss() {
  if (settings.trainer == TrainerKind::Sft) {
    std::string type = text("loss_type");
    if (type.empty())
      type =
          settings.fusedLoss.value || !isAtLeast(recipe.versions().trl, "1.10")
              ? "nll"
              : "chunked_nll";
    if (type == "dft")
      return refuse("loss_type",
                    "loss_type dft keeps copies of the logits beside those of "
                    "the loss, which is not modelled yet",
                    "nll and chunked_nll are modelled");
    if (type != "nll" && type != "chunked_nll")
      return error("invalid-value", "loss_type",
                   "'" + printable(type) + "' is no loss of SFTTrainer",
                   didYouMean(type, {"nll", "dft", "chunked_nll"}));
    if (type == "chunked_nll" && settings.fusedLoss.value)
      return error("conflicting-arguments", "loss_type",
                   "loss_type chunked_nll and use_liger_kernel exclude each "
                   "other; SFTTrainer stops with a ValueError",
                   "leave out one of them");
    if (type == "chunked_nll")
      set(settings.lossChunkRows, trlLossRows, "loss_type", type,
          "SFTTrainer computes the loss in chunks of 256 tokens");
    return;
  }
  if (settings.trainer == TrainerKind::Dpo) {
    if (settings.fusedLoss.value)
      return refuse("use_liger_kernel",
                    "Liger's preference loss computes head and loss in "
                    "chunks of pairs, which is not modelled yet",
                    "leave it out to plan DPO's own loss");
    const bool factory = recipe.reader() == Reader::LlamaFactory;
    settings.wholeLogProbabilities = factory;
    // LLaMA-Factory's use_ref_model.
    const std::string loss = factory ? text("pref_loss") : "";
    if (loss != "orpo" && loss != "simpo" && !truth("precompute_ref_log_probs"))
      readReference(factory ? "pref_loss" : "beta");
    return;
  }
  if (settings.trainer != TrainerKind::Grpo)
    return;
  const std::optional<double> beta = number("beta");
  if (beta && *beta != 0)
    readReference("beta");
  readGeneration();
}

/// overrides_of_model_config by its alias: attributes that axolotl sets in the
/// configuration (loaders/utils.py).
std::optional<double> SettingsReader::axolotlBalancing() {
  const yaml::Node *config = value("model_config");
  if (!config || !config->isMapping())
    return std::nullopt;
  const yaml::Node *logits = config->find("output_router_logits"),
                   *coefficient = config->find("router_aux_loss_coef");
  const size_t known = (logits ? 1 : 0) + (coefficient ? 1 : 0);
  if (config->entries.size() != known ||
      (logits && logits->kind != yaml::Kind::Bool) ||
      (coefficient && coefficient->kind != yaml::Kind::Int &&
       coefficient->kind != yaml::Kind::Float)) {
    refuse("model_config",
           "'model_config' changes the model's configuration, of which "
           "output_router_logits and router_aux_loss_coef are modelled",
           "write the others to the model's config.json");
    return std::nullopt;
  }
  if (!logits)
    return std::nullopt;
  constexpr double usual = 0.001; // of transformers' configurations
  return !logits->boolean ? 0 : coefficient ? coefficient->number : usual;
}

/// The experts' load balancing loss: output_router_logits of the model's
/// configuration, as the script sets it.
void SettingsReader::readBalancing() {
  const char *name = "router_aux_loss_coef";
  std::optional<double> coefficient;
  switch (recipe.reader()) {
  case Reader::Sft:
  case Reader::Dpo:
  case Reader::Grpo:
    if (hasScript && isAtLeast(recipe.versions().trl, "1.7"))
      coefficient = number(name);
    break;
  case Reader::LlamaFactory: { // configure_moe; 0 leaves config.json as it is
    name = "moe_aux_loss_coef";
    const std::string type = typeOf(settings.model.value);
    if (const auto given = number(name);
        given && *given != 0 &&
        (type == "granitemoe" || type == "mixtral" || type == "olmoe" ||
         type == "phimoe" || type == "qwen2_moe" || type == "qwen3_moe"))
      coefficient = given;
    break;
  }
  case Reader::Axolotl:
    name = "model_config";
    coefficient = axolotlBalancing();
    break;
  case Reader::Trainer:
    break;
  }
  if (coefficient)
    set(settings.balancing, coefficient, name, yaml::shortText(*value(name)),
        *coefficient == 0 ? "experts have no load balancing loss"
                          : "the experts' load balancing loss is added, where "
                            "the model has experts");
}

/// DPOTrainer and GRPOTrainer compare with a model of their own, or with the
/// trained one whose adapter is switched off.
void SettingsReader::readReference(const std::string &name) {
  const Given *rank = given("lora_r"); // of accel-opt's --lora-r
  const bool adapts =
      truth("use_peft") || given("adapter") || (rank && !rank->info);
  const bool factory = recipe.reader() == Reader::LlamaFactory;
  const std::string other = factory ? text("ref_model") : "";
  if (!other.empty() && other != text("model_name_or_path"))
    return refuse("ref_model",
                  "a reference of another configuration than the trained "
                  "model's is not modelled yet",
                  "leave ref_model out: the reference is then the model "
                  "itself");
  const bool itself = adapts && other.empty();
  // create_ref_model and prepare_model(evaluation_mode=True), which neither
  // shards nor moves it under FSDP.
  const bool sharded =
      accelerate.type() == "FSDP" || (given("fsdp") && value("fsdp"));
  if (factory && !itself && sharded)
    return refuse(other.empty() ? "stage" : "ref_model",
                  "under FSDP Accelerate neither shards LLaMA-Factory's "
                  "reference model nor moves it to the device, which is not "
                  "modelled",
                  "train an adapter, or use DeepSpeed");
  set(settings.reference,
      itself ? ReferenceModel::Itself : ReferenceModel::Second, name,
      itself ? "the model without its adapter" : "a second model",
      itself ? "the reference is the model without its adapter: its forward "
               "runs once more"
             : "the reference is a second model of the same weights, frozen");
}

/// What generates, and what it leaves on the devices that train. Completions
/// are scored once more by the trained weights where these may have moved since
/// (GRPOTrainer._generate_and_score_completions).
void SettingsReader::readGeneration() {
  const bool engine = truth("use_vllm");
  const bool elsewhere = engine && text("vllm_mode") == "server";
  const int64_t steps =
      integer("steps_per_generation")
          .value_or(integer("gradient_accumulation_steps").value_or(1));
  const int64_t every = steps * integer("num_iterations").value_or(1);
  const yaml::Node *corrects = value("vllm_importance_sampling_correction");
  settings.scoresItself =
      (engine && !(corrects && corrects->kind == yaml::Kind::Bool &&
                   !corrects->boolean)) ||
      (every > 0 &&
       integer("gradient_accumulation_steps").value_or(1) % every != 0);
  if (elsewhere)
    return note("generated-elsewhere", "vllm_mode",
                "completions come from other devices; the training step is "
                "planned",
                "");
  if (const Given *bytes = given("generation_memory"))
    return report(this->engine, Severity::Note, "generated-elsewhere", *bytes,
                  "completions are not planned, but for the bytes that they "
                  "keep on each device while a step trains",
                  "");
  if (engine && truth("vllm_enable_sleep_mode"))
    return note("generated-elsewhere", "vllm_enable_sleep_mode",
                "vLLM sleeps while a step trains, and keeps neither weights "
                "nor cache; completions themselves are not planned",
                "");
  if (const std::optional<double> share = number("vllm_gpu_memory_utilization");
      engine && share)
    return set(settings.generationShare, share, "vllm_gpu_memory_utilization",
               yaml::shortText(*value("vllm_gpu_memory_utilization")),
               "of each device is vLLM's while a step trains; completions "
               "themselves are not planned");
  refuse(given("use_vllm") ? "use_vllm" : "num_generations",
         "GRPO generates completions on the devices that train, whose bytes "
         "and time are not modelled yet",
         "pass --generation-memory with what they keep on each device while a "
         "step trains (0: nothing), or use_vllm: true");
}

} // namespace accel::scripts
