//===- ReadSettings.cpp - Arguments as typed settings ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// TrainingArguments.__post_init__ and Trainer of transformers 5.23.
//
//===----------------------------------------------------------------------===//
#include "frontends/Scripts/ReadSettings.h"

#include "frontends/Scripts/RemovedArguments.h"

#include <algorithm>
#include <charconv>

namespace accel {

namespace scripts {

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

const yaml::Node *SettingsReader::value(const std::string &name) const {
  if (const Given *found = given(name))
    return found->value->isNull() ? nullptr : found->value;
  const yaml::Node *standard = hasScript ? recipe.standard(name) : nullptr;
  return standard && !standard->isNull() ? standard : nullptr;
}

bool SettingsReader::truth(const std::string &name) const {
  const yaml::Node *node = value(name);
  return node && node->kind == yaml::Kind::Bool && node->boolean;
}

std::optional<int64_t> SettingsReader::integer(const std::string &name) const {
  const yaml::Node *node = value(name);
  if (!node || node->kind != yaml::Kind::Int || node->huge)
    return std::nullopt;
  return node->integer;
}

std::optional<double> SettingsReader::number(const std::string &name) const {
  const yaml::Node *node = value(name);
  if (!node ||
      (node->kind != yaml::Kind::Int && node->kind != yaml::Kind::Float))
    return std::nullopt;
  return node->number;
}

std::string SettingsReader::text(const std::string &name) const {
  const yaml::Node *node = value(name);
  return node && node->isScalar() ? node->text : "";
}

void SettingsReader::row(const std::string &name, const std::string &effective,
                         const std::string &why) {
  EffectiveValue v;
  const Given *from = given(name);
  v.key = settings.owner + "." + (from ? from->written : name);
  v.effective = effective;
  v.why = why;
  v.origin = from ? Origin::Written : Origin::Default;
  if (from) {
    v.asked = yaml::shortText(*from->value);
    v.at = from->at();
  }
  rows.push_back(std::move(v));
}

void SettingsReader::error(const char *code, const std::string &name,
                           const std::string &message,
                           const std::string &hint) {
  if (const Given *from = given(name))
    return report(engine, Severity::Error, code, *from, message, hint);
  engine.error(code, settings.file, message, hint);
}

void SettingsReader::refuse(const std::string &name, const std::string &message,
                            const std::string &hint) {
  if (recipe.planning())
    error(notSupportedCode, name, message, hint);
}

void SettingsReader::note(const char *code, const std::string &name,
                          const std::string &message, const std::string &hint) {
  if (const Given *from = given(name))
    return report(engine, Severity::Note, code, *from, message, hint);
  engine.note(code, settings.file, message, hint);
}

void SettingsReader::stand(const std::string &name, const yaml::Node *value,
                           const Given &like) {
  Given made = like;
  made.name = name;
  made.value = value;
  recipe.given().add(std::move(made));
}

const yaml::Node *SettingsReader::textAt(const std::string &name,
                                         const std::string &text) {
  const Given *from = given(name);
  return from ? nodes.text(from->file, from->value->range, text)
              : nodes.text(settings.file, {}, text);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

ScriptSettings SettingsReader::read() {
  settings.owner = toString(recipe.reader());
  for (const auto &[name, argument] : recipe.given().all())
    if (argument.info && argument.file != commandLineName)
      settings.file = argument.file;
  if (recipe.reader() == Reader::Trainer &&
      isAtLeast(recipe.versions().transformers, "5.23"))
    settings.names.checkpointing = "activation_checkpointing";
  if (recipe.reader() == Reader::Axolotl)
    settings.names = {"micro_batch_size",
                      "gradient_accumulation_steps",
                      "gradient_checkpointing",
                      "true",
                      "liger_fused_linear_cross_entropy",
                      "optimizer"};
  if (recipe.reader() == Reader::LlamaFactory) {
    settings.names.checkpointing = "disable_gradient_checkpointing";
    settings.names.checkpoints = "false";
    settings.names.fusedLoss = "enable_liger_kernel";
  }
  recipe.judge();
  if (recipe.reader() == Reader::Axolotl)
    translateAxolotl();
  if (recipe.reader() == Reader::LlamaFactory)
    translateLlamaFactory();
  readTrainer();
  readModel();
  readBatch();
  readLength();
  readPrecision();
  readOptimizer();
  readCheckpointing();
  readKernels();
  readLoss();
  readBalancing();
  readAdapter();
  readQuantization();
  readAccelerator();
  readDistributedConfig();
  readDistribution();
  checkEvaluation();
  checkDataLoader();
  return std::move(settings);
}

void SettingsReader::readBatch() {
  auto take = [&](Setting<std::optional<int64_t>> &setting, const char *name) {
    if (!given(name) && !hasScript)
      return;
    const std::optional<int64_t> count = integer(name);
    if (!count)
      return;
    if (*count < 1)
      return error("invalid-value", name,
                   "'" + std::string(name) + "' is " + std::to_string(*count) +
                       ", and a step needs one or more",
                   "write a positive number");
    set(setting, count, name, std::to_string(*count));
  };
  take(settings.microBatch, "per_device_train_batch_size");
  take(settings.accumulation, "gradient_accumulation_steps");
  if (truth("auto_find_batch_size"))
    note("default-micro-batch", "auto_find_batch_size",
         "auto_find_batch_size halves the micro-batch until it fits; the first "
         "one is planned",
         "--max-batch finds the largest that fits");
}

void SettingsReader::readPrecision() {
  const Given *bf16 = given("bf16"), *fp16 = given("fp16");
  const bool half = truth("fp16");
  bool brain = truth("bf16");
  // TRL's default: bf16 unless fp16 is asked for.
  const bool trl = settings.trainer != TrainerKind::None &&
                   settings.trainer != TrainerKind::Trainer &&
                   recipe.reader() != Reader::Axolotl &&
                   recipe.reader() != Reader::LlamaFactory;
  if (trl && (!bf16 || bf16->value->isNull()))
    brain = !half;
  if (half && brain)
    return error("conflicting-arguments", "bf16",
                 "bf16 and fp16 are both true; TrainingArguments stops with a "
                 "ValueError",
                 "keep one of them");
  if (truth("bf16_full_eval") && truth("fp16_full_eval"))
    error("conflicting-arguments", "bf16_full_eval",
          "bf16_full_eval and fp16_full_eval are both true; "
          "TrainingArguments stops with a ValueError",
          "keep one of them");
  if (half || brain) {
    const std::string name = half ? "fp16" : "bf16";
    noteReplacedFp8(name);
    accelerate.set("", "mixed_precision", textAt(name, name));
    row(name, "true",
        given(name)
            ? ""
            : "default of " + settings.owner + ", as fp16 is not asked for");
  } else if (hasScript && (bf16 || fp16)) {
    // Neither is true: what accelerate launch exports holds.
    row(bf16 ? "bf16" : "fp16", "false",
        accelerate.find("", "mixed_precision")
            ? "mixed_precision of the accelerate file holds"
            : "");
  }
  // torch.backends.cuda.matmul.allow_tf32: products of fp32 take the rate of
  // TF32 (NVIDIA's datasheets), and no byte changes.
  if (truth("tf32"))
    set(settings.tf32, true, "tf32", "true",
        "fp32 matmuls take the target's rate of TF32");
  // No key of TrainingArguments: the command's own --fp8, which takes only the
  // names of recipes.
  const std::string fp8 = text("fp8");
  if (const auto recipe = parseFp8Recipe(fp8))
    set(settings.fp8, std::optional(*recipe), "fp8", fp8,
        "linear layers compute in fp8");
}

/// TrainingArguments hands Accelerator its own bf16 or fp16 and leaves
/// ACCELERATE_MIXED_PRECISION unread (training_args.py, trainer.py of
/// transformers 5.23).
void SettingsReader::noteReplacedFp8(const std::string &by) {
  const yaml::Node *asked = accelerate.find("", "mixed_precision");
  if (!asked || (asked->text != "fp8" && asked->text != "FP8"))
    return;
  replacedPrecision = asked->text;
  Diagnostic d;
  d.severity = Severity::Warning;
  d.code = "ignored-key";
  d.file = asked->source ? *asked->source : "";
  d.key = "mixed_precision";
  d.message = "mixed_precision: fp8 has no effect: " + by + " of " +
              settings.owner + " replaces it, and no layer computes in fp8";
  d.hint =
      "write " + by + ": false to compute in fp8, or mixed_precision: " + by;
  d.setRange(asked->range);
  engine.report(std::move(d));
}

void SettingsReader::addEffective(std::vector<EffectiveValue> &table) const {
  for (EffectiveValue &row : table)
    if (row.key == "mixed_precision" && !replacedPrecision.empty()) {
      row.asked = replacedPrecision;
      row.why = std::string(toString(recipe.reader())) + " replaces it";
    }
  table.insert(table.end(), rows.begin(), rows.end());
}

void SettingsReader::readOptimizer() {
  const std::string optim = text("optim");
  if (!optim.empty() && (given("optim") || hasScript))
    set(settings.optim, optim, "optim", optim);
  if (given("optim_args") && value("optim_args"))
    refuse("optim_args",
           "'optim_args' changes what the optimizer holds, which is not "
           "modelled yet",
           "leave it out to plan the optimizer's defaults");
  auto take = [&](Setting<std::optional<double>> &setting, const char *name) {
    if (std::optional<double> rate = number(name);
        rate && (given(name) || hasScript))
      set(setting, rate, name, yaml::shortText(*value(name)));
  };
  take(settings.learningRate, "learning_rate");
  take(settings.weightDecay, "weight_decay");
  take(settings.maxGradNorm, "max_grad_norm");
}

/// transformers sets Accelerate's dynamo plugin (training_args.py): a backend
/// or a mode alone asks for it too.
void SettingsReader::readCompile() {
  const std::string backend = text("torch_compile_backend"),
                    mode = text("torch_compile_mode");
  if (!truth("torch_compile") && backend.empty() && mode.empty())
    return;
  const char *key = given("torch_compile")           ? "torch_compile"
                    : given("torch_compile_backend") ? "torch_compile_backend"
                                                     : "torch_compile_mode";
  if (!backend.empty() && backend != "inductor")
    return refuse("torch_compile_backend",
                  "what torch.compile (" + backend +
                      ") saves for the backward and fuses is not modelled yet",
                  "write inductor, or leave it out to plan the model as it "
                  "runs without it");
  // No key of TrainingArguments: the command's own --compile-regions.
  settings.compilesRegions = truth("compile_regions");
  if (usesCudaGraphs(mode))
    set(settings.replaysGraphs, true, "torch_compile_mode", mode);
  set(settings.compiled, true, key, "true",
      "Inductor: the backward is given what torch's min-cut partitioner saves");
}

void SettingsReader::readKernels() {
  readCompile();
  if (truth("use_liger_kernel")) {
    const yaml::Node *config = value("liger_kernel_config");
    bool fused = true;
    if (config && config->isMapping())
      if (const yaml::Node *loss = config->find("fused_linear_cross_entropy"))
        fused = loss->boolean;
    set(settings.fusedLoss, fused, "use_liger_kernel", "true",
        fused ? "the loss is computed in chunks, by Liger Kernel"
              : "without its fused loss; its other kernels save less for the "
                "backward than is counted");
    if (!fused)
      note("liger-kernels", "use_liger_kernel",
           "of Liger Kernel nothing is counted without its fused loss; its "
           "RMSNorm, SwiGLU and RoPE kernels save less than the modules that "
           "are counted",
           "");
  }
  const std::string attention = text("attn_implementation");
  if (attention.empty())
    return;
  constexpr std::pair<std::string_view, AttentionKernel> names[] = {
      {"sdpa", AttentionKernel::Sdpa},
      {"eager", AttentionKernel::Eager},
      {"flash_attention_2", AttentionKernel::FlashAttention2},
      {"flash_attention_3", AttentionKernel::FlashAttention3},
      {"flex_attention", AttentionKernel::Flex}};
  std::string kernel = attention;
  // Kernels of the Hub: kernels-community/flash-attn2.
  if (attention.find("flash-attn3") != std::string::npos)
    kernel = "flash_attention_3";
  else if (attention.find("flash-attn") != std::string::npos)
    kernel = "flash_attention_2";
  for (const auto &[known, meant] : names)
    if (kernel == known) {
      if (meant == AttentionKernel::Flex)
        return refuse("attn_implementation",
                      "what a compiled flex_attention keeps is not modelled "
                      "yet",
                      "sdpa, eager and flash_attention_2 are modelled");
      return set(settings.attention, std::optional(meant),
                 "attn_implementation", kernel,
                 meant == AttentionKernel::Sdpa ? ""
                 : meant == AttentionKernel::Eager
                     ? "keeps the scores of every pair of tokens"
                     : "counted as the flash kernel of sdpa, whose bytes are "
                       "the same");
    }
  if (recipe.reader() == Reader::Axolotl) // has kernels of its own
    return refuse("attn_implementation",
                  "the attention '" + printable(attention) +
                      "' is not modelled yet",
                  "sdpa and flash_attention_2 are modelled");
  error("invalid-value", "attn_implementation",
        "'" + printable(attention) + "' is no attention that is known here",
        didYouMean(attention, {"sdpa", "eager", "flash_attention_2",
                               "flash_attention_3", "flex_attention"}));
}

/// DDP's argument where a reader says it; a Trainer that is told nothing looks
/// at its model (findsUnusedParameters).
void SettingsReader::readUnusedParameters() {
  const char *name = "ddp_find_unused_parameters";
  auto &finds = settings.findsUnusedParameters;
  if (const yaml::Node *asked = value(name);
      asked && asked->kind == yaml::Kind::Bool)
    return set(finds, std::optional(asked->boolean), name,
               asked->boolean ? "true" : "false");
  // bool(cfg.ddp_find_unused_parameters) of axolotl's causal builder;
  // get_train_args of LLaMA-Factory for finetuning_type: lora.
  if (recipe.reader() == Reader::Axolotl ||
      (recipe.reader() == Reader::LlamaFactory && settings.adapter))
    finds.value = false;
}

void SettingsReader::readAccelerator() {
  if (std::optional<int64_t> megabytes = integer("ddp_bucket_cap_mb"))
    set(settings.ddpBucketBytes, std::optional<int64_t>(*megabytes << 20),
        "ddp_bucket_cap_mb", std::to_string(*megabytes));
  readUnusedParameters();
  const yaml::Node *config = value("accelerator_config");
  if (!config || !config->isMapping())
    return;
  const std::vector<std::string> names = {"split_batches",
                                          "dispatch_batches",
                                          "even_batches",
                                          "use_seedable_sampler",
                                          "non_blocking",
                                          "use_configured_state",
                                          "gradient_accumulation_kwargs"};
  for (const yaml::Entry &entry : config->entries)
    if (std::find(names.begin(), names.end(), entry.key->text) == names.end())
      error("invalid-value", "accelerator_config",
            "AcceleratorConfig has no '" + printable(entry.key->text) +
                "'; TrainingArguments stops with a TypeError",
            didYouMean(entry.key->text, names));
  auto on = [&](const yaml::Node *map, const char *key) {
    const yaml::Node *node = map ? map->find(key) : nullptr;
    return node && node->kind == yaml::Kind::Bool && node->boolean;
  };
  if (on(config, "split_batches"))
    set(settings.splitsBatches, true, "accelerator_config", "true",
        "split_batches divides per_device_train_batch_size among ranks");
  const yaml::Node *accumulation = config->find("gradient_accumulation_kwargs");
  const yaml::Node *steps = accumulation && accumulation->isMapping()
                                ? accumulation->find("num_steps")
                                : nullptr;
  if (steps && !steps->isNull() &&
      integer("gradient_accumulation_steps").value_or(1) > 1)
    error("conflicting-arguments", "accelerator_config",
          "num_steps of gradient_accumulation_kwargs and "
          "gradient_accumulation_steps say the same; Trainer stops with a "
          "ValueError",
          "keep gradient_accumulation_steps");
  if (accumulation && accumulation->isMapping() &&
      on(accumulation, "sync_each_batch"))
    set(settings.syncEachBatch, true, "accelerator_config", "true",
        "sync_each_batch reduces gradients in every micro-batch");
}

void SettingsReader::readDistribution() {
  settings.onCpu = truth("use_cpu");
  // Under other launchers it is the Trainer's own, in each rank.
  if (const std::string type = accelerate.type();
      settings.onCpu && (type.empty() || type == "NO" || type == "MULTI_CPU"))
    accelerate.set("", "use_cpu",
                   nodes.boolean(given("use_cpu")->file,
                                 given("use_cpu")->value->range, true));
  const Given *zero = given("deepspeed");
  const bool deepspeed = zero && !zero->value->isNull();
  const Given *fsdp = given("fsdp");
  const bool sharded =
      fsdp && !fsdp->value->isNull() &&
      !(fsdp->value->kind == yaml::Kind::Bool && !fsdp->value->boolean) &&
      !(fsdp->value->isString() && fsdp->value->text.empty());
  if (deepspeed && sharded)
    return error("conflicting-arguments", "fsdp",
                 "fsdp and deepspeed are both given; Trainer stops with a "
                 "ValueError",
                 "keep one of them");
  settings.shards = sharded;
  if (sharded)
    readFsdp();
  if (!deepspeed)
    return;
  accelerate.set("", "distributed_type",
                 nodes.text(zero->file, zero->value->range, "DEEPSPEED"));
  accelerate.remove("deepspeed_config");
  if (zero->value->isMapping()) {
    // Its reader finds the object in the file of arguments
    // (deepspeedRoot in Accelerate/DeepspeedJson.h).
    accelerate.set("deepspeed_config", "deepspeed_config_file",
                   nodes.text(zero->file, zero->value->range, zero->file));
    return row("deepspeed", "the object in this file", "");
  }
  accelerate.set("deepspeed_config", "deepspeed_config_file", zero->value);
  row("deepspeed", zero->value->text, "");
}

void SettingsReader::takeCount(Setting<std::optional<int64_t>> &setting,
                               const char *name) {
  if (const std::optional<int64_t> count = integer(name); count && *count > 0)
    set(setting, count, name, std::to_string(*count));
}

/// Without samples that are held out nothing is evaluated, and with them only
/// at steps or by a strategy (_configure_save_and_eval_strategy of
/// axolotl/core/builders/base.py); evals_per_epoch become steps, and a batch
/// that is not written is the micro-batch (normalize_config of
/// axolotl/utils/config).
void SettingsReader::readAxolotlEvaluation() {
  const yaml::Node *held = value("test_datasets");
  const std::string eval = text("eval_strategy");
  settings.evaluates = (number("val_set_size").value_or(0) > 0 ||
                        (held && held->isSequence() && !held->items.empty())) &&
                       (number("eval_steps").value_or(0) > 0 ||
                        number("evals_per_epoch").value_or(0) > 0 ||
                        (!eval.empty() && eval != "no"));
  if (settings.evaluates)
    takeCount(settings.evalBatch, "eval_batch_size");
  takeCount(settings.collectiveTimeout, "ddp_timeout");
  settings.savesCheckpoints = text("save_strategy") != "no" ||
                              number("save_steps").value_or(0) > 0 ||
                              number("saves_per_epoch").value_or(0) > 0;
  settings.savesStates = !truth("save_only_model") && settings.savesCheckpoints;
}

void SettingsReader::checkEvaluation() {
  if (!hasScript)
    return;
  if (recipe.reader() == Reader::Axolotl)
    return readAxolotlEvaluation();
  const std::string eval = text("eval_strategy"), save = text("save_strategy");
  settings.evaluates = (!eval.empty() && eval != "no") || truth("do_eval") ||
                       truth("eval_on_start");
  if (settings.evaluates) {
    takeCount(settings.evalBatch, "per_device_eval_batch_size");
    readPredictions();
  }
  takeCount(settings.collectiveTimeout, "ddp_timeout");
  settings.savesCheckpoints = save != "no";
  settings.savesStates = !truth("save_only_model") && settings.savesCheckpoints;
  if (truth("load_best_model_at_end") && save != "best" && eval != save)
    error("conflicting-arguments", "load_best_model_at_end",
          "load_best_model_at_end with eval_strategy " + eval +
              " and save_strategy " + save +
              ": TrainingArguments stops with a ValueError",
          "give both the same value");
  const std::string schedule = text("lr_scheduler_type");
  if ((schedule == "reduce_lr_on_plateau" || schedule == "greedy") &&
      eval == "no")
    error("conflicting-arguments", "lr_scheduler_type",
          "lr_scheduler_type " + schedule +
              " needs evaluation; TrainingArguments stops with a ValueError",
          "write eval_strategy: steps");
}

/// What Trainer.evaluation_loop keeps of the model's outputs.
void SettingsReader::readPredictions() {
  settings.evalLossOnly = truth("prediction_loss_only");
  settings.evalEachBatch = truth("batch_eval_metrics");
  settings.evalJoins =
      !value("eval_do_concat_batches") || truth("eval_do_concat_batches");
  const char *name = "eval_accumulation_steps";
  const std::optional<int64_t> batches = integer(name);
  if (batches && *batches < 1)
    return error("invalid-value", name,
                 "'eval_accumulation_steps' is " + std::to_string(*batches) +
                     ", and predictions go to the host after one or more "
                     "batches",
                 "write a positive number, or leave it out to keep all on the "
                 "device");
  if (batches)
    set(settings.evalAccumulation, batches, name, std::to_string(*batches));
}

void SettingsReader::checkDataLoader() {
  if (!hasScript || recipe.reader() == Reader::Axolotl ||
      !value("dataloader_prefetch_factor"))
    return;
  if (integer("dataloader_num_workers").value_or(0) == 0)
    error("conflicting-arguments", "dataloader_prefetch_factor",
          "dataloader_prefetch_factor without workers: TrainingArguments "
          "stops with a ValueError",
          "write dataloader_num_workers, or leave it out");
}

} // namespace scripts
} // namespace accel
